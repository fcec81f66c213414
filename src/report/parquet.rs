//! Parquet: the table that [CSV](super::csv) has, with typed columns, for data frames. Behind the feature `parquet`.
//!
//! Column names are those of the CSV. Counts are 64-bit unsigned integers (doubles where one of the column passes 2^64,
//! as bins of huge runs on profiles may: CSV and JSON have them exactly), other numbers doubles, the rest booleans and
//! UTF-8 strings; a cell that is empty in the CSV is null. One row group, uncompressed: the same result gives the same
//! bytes.

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::io;
use std::sync::Arc;

/// The cells of a column that are not null, of one type.
enum Cells {
    Counts(Vec<i64>),
    Numbers(Vec<f64>),
    Flags(Vec<bool>),
    Texts(Vec<ByteArray>),
}

impl Cells {
    /// The narrowest type that all cells have. Our CSV writes a fraction or an exponent in every number that is not a
    /// count, so the type of a column does not depend on its values; one without any value holds numbers.
    fn of(cells: &[&str]) -> Self {
        fn all<T>(cells: &[&str], parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
            cells.iter().map(|cell| parse(cell)).collect()
        }
        if cells.is_empty() {
            return Cells::Numbers(Vec::new());
        }
        // Parquet keeps unsigned integers in the bits of signed ones.
        all(cells, |cell| cell.parse::<u64>().ok().map(u64::cast_signed))
            .map(Cells::Counts)
            .or_else(|| all(cells, |cell| cell.parse().ok()).map(Cells::Numbers))
            .or_else(|| all(cells, |cell| cell.parse().ok()).map(Cells::Flags))
            .unwrap_or_else(|| Cells::Texts(cells.iter().map(|&cell| ByteArray::from(cell)).collect()))
    }

    fn field(&self, name: &str) -> Result<Type, ParquetError> {
        let (physical, logical) = match self {
            Cells::Counts(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Cells::Numbers(_) => (Physical::DOUBLE, None),
            Cells::Flags(_) => (Physical::BOOLEAN, None),
            Cells::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }

    /// Writes the column; a definition level of 0 is null.
    fn write(&self, column: &mut SerializedColumnWriter<'_>, defined: &[i16]) -> Result<usize, ParquetError> {
        match self {
            Cells::Counts(cells) => column.typed::<Int64Type>().write_batch(cells, Some(defined), None),
            Cells::Numbers(cells) => column.typed::<DoubleType>().write_batch(cells, Some(defined), None),
            Cells::Flags(cells) => column.typed::<BoolType>().write_batch(cells, Some(defined), None),
            Cells::Texts(cells) => column.typed::<ByteArrayType>().write_batch(cells, Some(defined), None),
        }
    }
}

/// A table in CSV with a header, as Parquet.
pub(super) fn from_csv(table: &[u8]) -> io::Result<Vec<u8>> {
    let mut reader = csv::Reader::from_reader(table);
    let names = reader.headers()?.clone();
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>()?;
    let columns: Vec<(Cells, Vec<i16>)> = (0..names.len())
        .map(|i| {
            let cells: Vec<&str> = rows.iter().map(|row| &row[i]).filter(|cell| !cell.is_empty()).collect();
            (Cells::of(&cells), rows.iter().map(|row| i16::from(!row[i].is_empty())).collect())
        })
        .collect();
    write(&names, &columns).map_err(io::Error::other)
}

fn write(names: &csv::StringRecord, columns: &[(Cells, Vec<i16>)]) -> Result<Vec<u8>, ParquetError> {
    let fields = names.iter().zip(columns).map(|(name, (cells, _))| cells.field(name).map(Arc::new));
    let schema = Type::group_type_builder("table").with_fields(fields.collect::<Result<_, _>>()?).build()?;
    let writer = concat!("leakybins ", env!("CARGO_PKG_VERSION"));
    let properties = WriterProperties::builder().set_created_by(writer.to_owned()).build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut rows = file.next_row_group()?;
    for (cells, defined) in columns {
        let mut column = rows.next_column()?.expect("as many columns as fields");
        cells.write(&mut column, defined)?;
        column.close()?;
    }
    rows.close()?;
    file.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn tables_read_back_with_types_and_nulls() {
        let csv = "name,count,p,low,short\na,3,0.5,,true\n\"b, c\",18446744073709551615,1e-300,0.25,false\n";
        let bytes = from_csv(csv.as_bytes()).expect("a table");
        assert_eq!(bytes, from_csv(csv.as_bytes()).expect("a table"));
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("Parquet");
        let rows: Vec<String> =
            reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row").to_string()).collect();
        assert_eq!(
            rows,
            [
                "{name: \"a\", count: 3, p: 0.5, low: null, short: true}",
                "{name: \"b, c\", count: 18446744073709551615, p: 1E-300, low: 0.25, short: false}",
            ]
        );
        assert!(from_csv(b"a,b\n").is_ok(), "no row");
    }
}
