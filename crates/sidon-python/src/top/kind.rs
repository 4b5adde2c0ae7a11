//! The types of keys that a table can keep.

use crate::{
    answer::wrong,
    error::BadKey,
    key::{Column, Form},
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyString},
};
use std::net::IpAddr;

/// The bytes of a text, with zeros behind it.
pub(super) const TEXT: usize = 64;
/// The widths of keys of bytes.
pub(super) const WIDTHS: [usize; 7] = [4, 8, 13, 16, 32, 37, 64];

/// A type of keys, as Python code names it: `"int"`, `"str"`, `"ipv4"`, `"ipv6"`, `"ip"`, or the number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Text,
    V4,
    V6,
    Ip,
    Bytes(usize),
}

const NAMED: [(&str, Kind); 5] = [
    ("int", Kind::Int),
    ("str", Kind::Text),
    ("ipv4", Kind::V4),
    ("ipv6", Kind::V6),
    ("ip", Kind::Ip),
];

impl<'py> FromPyObject<'_, 'py> for Kind {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(width) = object.extract::<usize>()
            && WIDTHS.contains(&width)
        {
            return Ok(Kind::Bytes(width));
        }
        let named = object.extract::<&str>().ok();
        let found = named.and_then(|name| NAMED.into_iter().find(|(known, _)| *known == name));
        found.map(|(_, kind)| kind).ok_or_else(|| {
            let all: Vec<_> = WIDTHS.iter().map(ToString::to_string).collect();
            wrong(format!(
                "key must be \"int\", \"str\", \"ipv4\", \"ipv6\", \"ip\", or a number of bytes: {}",
                all.join(", ")
            ))
        })
    }
}

impl<'py> IntoPyObject<'py> for Kind {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match NAMED.into_iter().find(|(_, kind)| *kind == self) {
            Some((name, _)) => Ok(PyString::new(py, name).into_any()),
            None => Ok(self.width().into_pyobject(py)?.into_any()),
        }
    }
}

impl Kind {
    /// The bytes of a stored key; 17 for an address of either version.
    pub(crate) fn width(self) -> usize {
        match self {
            Kind::Int => 8,
            Kind::Text => TEXT,
            Kind::V4 => 4,
            Kind::V6 => 16,
            Kind::Ip => 17,
            Kind::Bytes(width) => width,
        }
    }

    /// Whether keys of these bytes can be kept.
    fn accepts(self, bytes: &[u8]) -> Result<(), String> {
        let len = bytes.len();
        match self {
            Kind::Text if len > TEXT => Err(format!("a text of {len} bytes is longer than {TEXT}")),
            Kind::Text if bytes.last() == Some(&0) => Err("a text ends with a zero".to_owned()),
            Kind::Ip if len != 4 && len != 16 => Err(format!("{len} bytes are no address")),
            Kind::V4 | Kind::V6 | Kind::Bytes(_) if len != self.width() => {
                Err(format!("{len} bytes, and keys of this table have {}", self.width()))
            }
            _ => Ok(()),
        }
    }

    /// `Ok` if every key of the column can be kept. Nothing has been written yet.
    pub(crate) fn check(self, column: &Column) -> Result<(), BadKey> {
        let form = match self {
            Kind::Int => Form::Number,
            Kind::Text => Form::Text,
            Kind::V4 | Kind::V6 | Kind::Ip => Form::Address,
            Kind::Bytes(_) => Form::Bytes,
        };
        let mut wrong = Ok(());
        for (first, rows) in column.parts() {
            if !rows.are(form) {
                let why = format!("keys of this table are {}", self.in_words());
                return Err(BadKey { row: None, why });
            }
            let mut row = first;
            rows.each_key(&mut |bytes| {
                if let (Ok(()), Err(why)) = (&wrong, self.accepts(bytes)) {
                    wrong = Err(BadKey { row: Some(row), why });
                }
                row += 1;
            });
        }
        wrong
    }

    pub(crate) fn in_words(self) -> String {
        match self {
            Kind::Int => "integers".to_owned(),
            Kind::Text => format!("text of at most {TEXT} bytes"),
            Kind::V4 => "IPv4 addresses".to_owned(),
            Kind::V6 => "IPv6 addresses".to_owned(),
            Kind::Ip => "IP addresses".to_owned(),
            Kind::Bytes(width) => format!("bytes, {width} each"),
        }
    }

    /// The Python object of a stored key.
    pub(super) fn object<'py>(self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let address = || match <[u8; 4]>::try_from(bytes) {
            Ok(octets) => IpAddr::from(octets),
            Err(_) => <[u8; 16]>::try_from(bytes).map_or(IpAddr::from([0; 4]), IpAddr::from),
        };
        Ok(match self {
            Kind::Int => {
                let number = <[u8; 8]>::try_from(bytes).map_or(0, u64::from_le_bytes);
                number.into_pyobject(py)?.into_any()
            }
            Kind::Text => {
                let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                PyString::new(py, &String::from_utf8_lossy(&bytes[..end])).into_any()
            }
            Kind::V4 | Kind::V6 | Kind::Ip => address().into_pyobject(py)?.into_any(),
            Kind::Bytes(_) => PyBytes::new(py, bytes).into_any(),
        })
    }
}
