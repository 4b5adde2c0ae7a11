//! A Parquet file, written one row group after the other.
//!
//! The writer of the crate `parquet` needs an output that it may send to another thread. An output file of this
//! program may not be sent, so the writer fills a buffer, which is copied to the file after each row group.

use anyhow::ensure;
use parquet::{
    basic::Compression,
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    file::{
        properties::WriterProperties,
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::parser::parse_message_type,
};
use std::{
    io::{self, Write},
    mem::take,
    sync::{Arc, Mutex, PoisonError},
};

/// A column of a row group. `None` is a null.
pub(super) enum Column {
    Bytes(Vec<Option<Vec<u8>>>),
    /// Nanoseconds since 1970.
    Times(Vec<Option<i64>>),
    Counts(Vec<Option<u64>>),
    Fractions(Vec<Option<f64>>),
    Flags(Vec<Option<bool>>),
}

impl Column {
    pub(super) fn text(values: impl IntoIterator<Item = Option<String>>) -> Self {
        Column::Bytes(values.into_iter().map(|text| text.map(String::into_bytes)).collect())
    }

    fn write(self, to: &mut SerializedColumnWriter<'_>) -> anyhow::Result<()> {
        match self {
            Column::Bytes(values) => write::<ByteArrayType, _>(to, values, ByteArray::from),
            Column::Times(values) => write::<Int64Type, _>(to, values, |time| time),
            // Parquet stores an unsigned number of 64 bits as the signed one of equal bits.
            Column::Counts(values) => write::<Int64Type, _>(to, values, u64::cast_signed),
            Column::Fractions(values) => write::<DoubleType, _>(to, values, |number| number),
            Column::Flags(values) => write::<BoolType, _>(to, values, |flag| flag),
        }
    }
}

/// Writes the values that are not null, and for each row whether it has one.
fn write<T: DataType, V>(
    to: &mut SerializedColumnWriter<'_>,
    values: Vec<Option<V>>,
    convert: impl Fn(V) -> T::T,
) -> anyhow::Result<()> {
    let present: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().map(convert).collect();
    to.typed::<T>().write_batch(&values, Some(&present), None)?;
    Ok(())
}

/// Bytes that the writer has made.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A table that is being written.
pub(super) struct Table<'a> {
    out: &'a mut dyn Write,
    buffer: Buffer,
    writer: SerializedFileWriter<Buffer>,
}

impl<'a> Table<'a> {
    /// A table with the columns of this message type.
    pub(super) fn new(out: &'a mut dyn Write, schema: &str) -> anyhow::Result<Self> {
        let buffer = Buffer::default();
        let properties = WriterProperties::builder()
            .set_compression(Compression::LZ4_RAW)
            .set_created_by(format!("sidon version {}", env!("CARGO_PKG_VERSION")))
            .build();
        let schema = Arc::new(parse_message_type(schema)?);
        let writer = SerializedFileWriter::new(buffer.clone(), schema, Arc::new(properties))?;
        Ok(Table { out, buffer, writer })
    }

    /// Writes a row group. All columns have equal lengths.
    pub(super) fn group(&mut self, columns: Vec<Column>) -> anyhow::Result<()> {
        let mut group = self.writer.next_row_group()?;
        let mut columns = columns.into_iter();
        while let Some(mut to) = group.next_column()? {
            let column = columns.next();
            ensure!(column.is_some(), "a row group has fewer columns than its table");
            column.map_or(Ok(()), |column| column.write(&mut to))?;
            to.close()?;
        }
        group.close()?;
        self.copy()
    }

    /// Writes the end of the file.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.writer.finish()?;
        self.copy()
    }

    fn copy(&mut self) -> anyhow::Result<()> {
        let bytes = take(&mut *self.buffer.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(self.out.write_all(&bytes)?)
    }
}
