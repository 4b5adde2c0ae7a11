//! Keys and columns of keys, from Python objects, without copies where Python has them in a row.
//!
//! | Python | the key's bytes |
//! |---|---|
//! | `bytes` | as they are |
//! | `str` | UTF-8 |
//! | `int` | eight, little-endian: of a `u64`, or of an `i64` below 0 |
//! | `ipaddress` | 4 or 16, in network order |
//!
//! A column gives the same keys as its values one by one: a narrower integer is widened. A column is an Arrow
//! array or stream, an array of numpy (a row of a two-dimensional array of bytes is one key), or any iterable.

use crate::error::{BadKey, OrRaise, Raise};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType,
    cast::AsArray,
    types::{
        Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    pybacked::{PyBackedBytes, PyBackedStr},
    types::{PyBool, PyByteArray, PyBytes, PyInt, PyString},
};
use pyo3_arrow::{buffer::AnyBufferProtocol, input::AnyArray};
use sidon::{
    Digest, Key, Seed,
    key::{Hasher, digests},
};
use std::{borrow::Cow, net::IpAddr};

/// Keys that are hashed together: their digests take 32 KiB.
const CHUNK: usize = 4096;

/// A key.
pub(crate) enum Value {
    Bytes(PyBackedBytes),
    Text(PyBackedStr),
    /// From -2^63 to 2^64 - 1.
    Number(i128),
    Address(IpAddr),
}

impl Value {
    /// Calls `act` with the bytes that are hashed.
    pub(crate) fn with_bytes<R>(&self, act: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Value::Bytes(bytes) => act(bytes),
            Value::Text(text) => act(text.as_bytes()),
            Value::Number(number) => act(&(*number as u64).to_le_bytes()),
            Value::Address(IpAddr::V4(address)) => act(&address.octets()),
            Value::Address(IpAddr::V6(address)) => act(&address.octets()),
        }
    }
}

impl Key for Value {
    fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
        self.with_bytes(|bytes| hasher.digest(bytes))
    }
}

impl<'py> FromPyObject<'_, 'py> for Value {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>() {
            return Ok(Value::Bytes(object.extract()?));
        }
        if object.is_instance_of::<PyString>() {
            return Ok(Value::Text(object.extract()?));
        }
        let is_number = object.is_instance_of::<PyInt>() || object.hasattr("__index__")?;
        if is_number && !object.is_instance_of::<PyBool>() {
            if let Ok(number) = object.extract::<u64>() {
                return Ok(Value::Number(number.into()));
            }
            let negative = object.extract::<i64>().map_err(|_| BadKey {
                row: None,
                why: "an integer key must be from -2**63 to 2**64 - 1".to_owned(),
            });
            return Ok(Value::Number(negative.or_raise(object.py())?.into()));
        }
        if let Ok(packed) =
            object.getattr("packed").and_then(|packed| Ok(packed.extract::<PyBackedBytes>()?))
        {
            if let Ok(octets) = <[u8; 4]>::try_from(&packed[..]) {
                return Ok(Value::Address(octets.into()));
            }
            if let Ok(octets) = <[u8; 16]>::try_from(&packed[..]) {
                return Ok(Value::Address(octets.into()));
            }
        }
        let found = object.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "a key is bytes, str, int or an address of the module ipaddress, not {found}"
        )))
    }
}

/// A type of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Bytes,
    Text,
    Number,
    Address,
}

impl Value {
    fn form(&self) -> Form {
        match self {
            Value::Bytes(_) => Form::Bytes,
            Value::Text(_) => Form::Text,
            Value::Number(_) => Form::Number,
            Value::Address(_) => Form::Address,
        }
    }

    fn amount(&self) -> Option<u64> {
        match self {
            Value::Number(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }
}

/// Some rows of a column, one after the other in memory.
pub(crate) enum Rows {
    /// Integers of eight bytes, and whether they have a sign.
    Numbers(ScalarBuffer<u64>, bool),
    /// An array of narrower integers.
    Narrow(ArrayRef),
    /// An array of bytes or text.
    Bytes(ArrayRef),
    /// Bytes, and the number of bytes of a key.
    Fixed(ScalarBuffer<u8>, usize),
    /// Python objects.
    Values(Vec<Value>),
}

/// Keys in order.
pub(crate) struct Column {
    rows: Vec<Rows>,
    len: usize,
}

impl<'py> FromPyObject<'_, 'py> for Column {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let single = object.is_instance_of::<PyBytes>()
            || object.is_instance_of::<PyByteArray>()
            || object.is_instance_of::<PyString>();
        if single {
            return Err(PyTypeError::new_err(
                "a batch is a column of keys, not one key: pass [key]",
            ));
        }
        let mut column = Column { rows: Vec::new(), len: 0 };
        if object.hasattr("__arrow_c_stream__")? || object.hasattr("__arrow_c_array__")? {
            for array in object.extract::<AnyArray>()?.into_reader()? {
                let array = array.map_err(|why| PyTypeError::new_err(why.to_string()))?;
                column.add_array(array).or_raise(py)?;
            }
            return Ok(column);
        }
        let mut object = object.to_owned();
        if object.hasattr("__array__")? {
            object = py.import("numpy")?.call_method1("ascontiguousarray", (&object,))?;
        }
        if let Ok(buffer) = object.extract::<AnyBufferProtocol>() {
            let array =
                buffer.into_arrow_array().map_err(|why| PyTypeError::new_err(why.to_string()))?;
            column.add_array(array).or_raise(py)?;
            return Ok(column);
        }
        let mut values = Vec::new();
        for (row, value) in object.try_iter()?.enumerate() {
            values.push(value?.extract::<Value>().map_err(|why| {
                let why = why.value(py).to_string();
                BadKey { row: Some(row), why }.raise(py)
            })?);
        }
        column.len = values.len();
        column.rows.push(Rows::Values(values));
        Ok(column)
    }
}

impl Column {
    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A column of one key.
    pub(crate) fn one(value: Value) -> Self {
        Column { rows: vec![Rows::Values(vec![value])], len: 1 }
    }

    /// The numbers of a column of amounts, which are from 0 to 2^64 - 1. `None` for other numbers, or if there
    /// are not `len`.
    pub(crate) fn amounts(&self, len: usize) -> Option<Cow<'_, [u64]>> {
        match &self.rows[..] {
            _ if self.len != len => None,
            [rows] => rows.amounts(),
            all => {
                let mut joined = Vec::with_capacity(len);
                for rows in all {
                    joined.extend_from_slice(&rows.amounts()?);
                }
                Some(joined.into())
            }
        }
    }

    /// The rows of the column, and the index of the first one of each part.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, &Rows)> {
        let mut first = 0;
        self.rows.iter().map(move |rows| {
            let at = first;
            first += rows.len();
            (at, rows)
        })
    }

    fn add_array(&mut self, array: ArrayRef) -> Result<(), BadKey> {
        if array.null_count() > 0 {
            let null = (0..array.len()).find(|&row| array.is_null(row)).unwrap_or(0);
            return Err(BadKey { row: Some(self.len + null), why: "a key is null".to_owned() });
        }
        let len = array.len();
        let rows = match array.data_type() {
            DataType::UInt64 => {
                Rows::Numbers(array.as_primitive::<UInt64Type>().values().clone(), false)
            }
            DataType::Int64 => {
                let values = array.as_primitive::<Int64Type>().values().inner().clone();
                Rows::Numbers(ScalarBuffer::new(values, 0, len), true)
            }
            DataType::UInt32
            | DataType::UInt16
            | DataType::UInt8
            | DataType::Int32
            | DataType::Int16
            | DataType::Int8 => Rows::Narrow(array),
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View => Rows::Bytes(array),
            DataType::FixedSizeBinary(width) if *width > 0 => {
                let width = *width as usize;
                let all = array.as_fixed_size_binary();
                Rows::Fixed(ScalarBuffer::new(all.values().clone(), 0, len * width), width)
            }
            // A two-dimensional array of bytes.
            DataType::FixedSizeList(field, width)
                if *width > 0 && *field.data_type() == DataType::UInt8 =>
            {
                let (list, width) = (array.as_fixed_size_list(), *width as usize);
                let values = list.values().as_primitive::<UInt8Type>().values();
                let first = list.value_offset(0) as usize;
                Rows::Fixed(values.slice(first, len * width), width)
            }
            other => {
                let why = format!("a column of keys has integers, bytes or text, not {other}");
                return Err(BadKey { row: None, why });
            }
        };
        self.len += len;
        self.rows.push(rows);
        Ok(())
    }

    /// Calls `act` with the digests of the keys under this seed, in order and in parts, and with the index of
    /// the first one of each part.
    pub(crate) fn each(&self, seed: Seed, mut act: impl FnMut(usize, &[Digest])) {
        let mut hashed = vec![Digest(0); CHUNK.min(self.len)];
        for (first, rows) in self.parts() {
            let mut act = |at: usize, digests: &[Digest]| act(first + at, digests);
            match rows {
                Rows::Numbers(numbers, _) => hash(seed, numbers, &mut hashed, &mut act),
                Rows::Fixed(bytes, 4) => {
                    hash(seed, bytes.as_chunks::<4>().0, &mut hashed, &mut act);
                }
                Rows::Fixed(bytes, 13) => {
                    hash(seed, bytes.as_chunks::<13>().0, &mut hashed, &mut act);
                }
                Rows::Fixed(bytes, 16) => {
                    hash(seed, bytes.as_chunks::<16>().0, &mut hashed, &mut act);
                }
                Rows::Values(values) => hash(seed, values, &mut hashed, &mut act),
                Rows::Fixed(bytes, width) => {
                    by_part(bytes.chunks_exact(*width), seed, &mut hashed, &mut act);
                }
                Rows::Narrow(_) => by_part(rows.numbers(), seed, &mut hashed, &mut act),
                Rows::Bytes(_) => by_part(rows.bytes(), seed, &mut hashed, &mut act),
            }
        }
    }
}

/// Calls `act` with the digests of a slice of keys.
fn hash<K: Key>(
    seed: Seed,
    keys: &[K],
    hashed: &mut [Digest],
    act: &mut dyn FnMut(usize, &[Digest]),
) {
    for (part, keys) in keys.chunks(CHUNK).enumerate() {
        let hashed = &mut hashed[..keys.len()];
        digests(seed, keys, hashed);
        act(part * CHUNK, hashed);
    }
}

/// Calls `act` with the digests of keys that are not in a row, or not as they are hashed.
fn by_part<K: Key>(
    mut keys: impl Iterator<Item = K>,
    seed: Seed,
    hashed: &mut [Digest],
    act: &mut dyn FnMut(usize, &[Digest]),
) {
    let (mut part, mut first) = (Vec::with_capacity(hashed.len()), 0);
    loop {
        part.clear();
        part.extend(keys.by_ref().take(CHUNK));
        if part.is_empty() {
            return;
        }
        let hashed = &mut hashed[..part.len()];
        digests(seed, &part, hashed);
        act(first, hashed);
        first += part.len();
    }
}

impl Rows {
    fn len(&self) -> usize {
        match self {
            Rows::Numbers(numbers, _) => numbers.len(),
            Rows::Narrow(array) | Rows::Bytes(array) => array.len(),
            Rows::Fixed(bytes, width) => bytes.len() / width,
            Rows::Values(values) => values.len(),
        }
    }

    /// The integers of rows that hold integers; nothing of others.
    pub(crate) fn numbers(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        fn widened<'a, T: ArrowPrimitiveType>(
            array: &'a ArrayRef,
        ) -> Box<dyn Iterator<Item = u64> + 'a>
        where
            i64: From<T::Native>,
        {
            Box::new(
                array.as_primitive::<T>().values().iter().map(|&n| i64::from(n).cast_unsigned()),
            )
        }
        match self {
            Rows::Numbers(numbers, _) => Box::new(numbers.iter().copied()),
            Rows::Narrow(array) => match array.data_type() {
                DataType::UInt32 => widened::<UInt32Type>(array),
                DataType::UInt16 => widened::<UInt16Type>(array),
                DataType::UInt8 => widened::<UInt8Type>(array),
                DataType::Int32 => widened::<Int32Type>(array),
                DataType::Int16 => widened::<Int16Type>(array),
                _ => widened::<Int8Type>(array),
            },
            _ => Box::new(std::iter::empty()),
        }
    }

    /// The integers of rows that hold integers from 0 to 2^64 - 1 only. `None` of others.
    pub(crate) fn amounts(&self) -> Option<Cow<'_, [u64]>> {
        match self {
            Rows::Numbers(numbers, signed) => {
                let fits = !signed || numbers.iter().all(|&number| number.cast_signed() >= 0);
                fits.then(|| Cow::Borrowed(&numbers[..]))
            }
            Rows::Narrow(_) => {
                let fits = self.numbers().all(|number| number.cast_signed() >= 0);
                fits.then(|| self.numbers().collect())
            }
            Rows::Values(values) => values.iter().map(Value::amount).collect(),
            Rows::Bytes(_) | Rows::Fixed(..) => None,
        }
    }

    /// Calls `act` with the bytes of every key that are hashed.
    pub(crate) fn each_key(&self, act: &mut dyn FnMut(&[u8])) {
        match self {
            Rows::Numbers(..) | Rows::Narrow(_) => {
                self.numbers().for_each(|number| act(&number.to_le_bytes()));
            }
            Rows::Bytes(_) | Rows::Fixed(..) => self.bytes().for_each(act),
            Rows::Values(values) => values.iter().for_each(|value| value.with_bytes(&mut *act)),
        }
    }

    /// Whether all rows hold this type of keys.
    pub(crate) fn are(&self, form: Form) -> bool {
        match self {
            Rows::Numbers(..) | Rows::Narrow(_) => form == Form::Number,
            Rows::Fixed(..) => form == Form::Bytes || form == Form::Address,
            Rows::Bytes(array) => match array.data_type() {
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => form == Form::Text,
                _ => form == Form::Bytes || form == Form::Address,
            },
            Rows::Values(values) => values.iter().all(|value| value.form() == form),
        }
    }

    /// The bytes of rows that hold bytes or text; nothing of others.
    pub(crate) fn bytes(&self) -> Box<dyn Iterator<Item = &[u8]> + '_> {
        match self {
            Rows::Fixed(bytes, width) => Box::new(bytes.chunks_exact(*width)),
            Rows::Bytes(array) => match array.data_type() {
                DataType::Binary => Box::new(array.as_binary::<i32>().iter().flatten()),
                DataType::LargeBinary => Box::new(array.as_binary::<i64>().iter().flatten()),
                DataType::BinaryView => Box::new(array.as_binary_view().iter().flatten()),
                DataType::Utf8 => {
                    Box::new(array.as_string::<i32>().iter().flatten().map(str::as_bytes))
                }
                DataType::LargeUtf8 => {
                    Box::new(array.as_string::<i64>().iter().flatten().map(str::as_bytes))
                }
                _ => Box::new(array.as_string_view().iter().flatten().map(str::as_bytes)),
            },
            _ => Box::new(std::iter::empty()),
        }
    }
}
