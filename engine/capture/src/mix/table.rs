//! Reads a CSV file with a header, as `COPY ... CSV HEADER` writes it, into memory.

use ground::output::could_not;

use crate::error::CaptureError;
use crate::format::Source;
use crate::log::split_row;

/// A CSV file whose columns are found by their names.
pub struct NamedTable {
    name: String,
    bytes: u64,
    header: Vec<String>,
    rows: Vec<(u64, Vec<String>)>,
}

/// A row of a CSV file, whose fields are found by the names of the columns.
#[derive(Clone, Copy)]
pub struct NamedRow<'a> {
    table: &'a NamedTable,
    /// The line in which the row begins, counted from 1.
    pub line: u64,
    fields: &'a [String],
}

impl NamedTable {
    /// Reads a file. It must have the `wanted` columns, and may have others.
    pub fn read(name: &str, wanted: &[&str]) -> Result<Self, CaptureError> {
        let content =
            ground::trust::read_file(&ground::text::path(name)).map_err(could_not(format_args!("read \"{name}\"")))?;
        let bytes = content.len() as u64;
        let mut table = Self { name: name.to_owned(), bytes, header: Vec::new(), rows: Vec::new() };
        let (mut begin, mut line, mut first_line, mut quotes) = (0, 0, 1, 0);
        for (at, byte) in content.iter().copied().chain([b'\n']).enumerate() {
            quotes += usize::from(byte == b'"');
            if byte != b'\n' {
                continue;
            }
            line += 1;
            if quotes % 2 == 0 {
                table.push(&content[begin..at], first_line)?;
                (begin, first_line) = (at + 1, line + 1);
            }
        }
        if begin < content.len() {
            return Err(CaptureError::OpenQuote { file: name.to_owned(), line: first_line });
        }
        if let Some(missing) = wanted.iter().find(|column| table.place(column).is_none()) {
            return Err(CaptureError::NoColumn { file: name.to_owned(), column: (*missing).to_owned() });
        }
        Ok(table)
    }

    fn push(&mut self, row: &[u8], line: u64) -> Result<(), CaptureError> {
        let row = row.strip_suffix(b"\r").unwrap_or(row);
        if row.is_empty() {
            return Ok(());
        }
        let mut fields = Vec::new();
        let count = split_row(row, &mut fields);
        let texts: Result<Vec<_>, _> = fields.into_iter().map(String::from_utf8).collect();
        let texts = texts.map_err(|_| CaptureError::NotUtf8 { file: self.name.clone(), line })?;
        if self.header.is_empty() && count > 0 {
            self.header = texts;
        } else if count == self.header.len() {
            self.rows.push((line, texts));
        } else {
            return Err(CaptureError::NotARow { file: self.name.clone(), line });
        }
        Ok(())
    }

    fn place(&self, column: &str) -> Option<usize> {
        self.header.iter().position(|name| name == column)
    }

    pub fn rows(&self) -> impl Iterator<Item = NamedRow<'_>> {
        self.rows.iter().map(|(line, fields)| NamedRow { table: self, line: *line, fields })
    }

    /// Returns the description of the file for a capture.
    pub fn source(&self, format: &str) -> Source {
        Source {
            name: self.name.clone(),
            format: format.to_owned(),
            packing: None,
            prefix: None,
            zones: None,
            bytes: self.bytes,
        }
    }
}

impl<'a> NamedRow<'a> {
    /// Returns the text of a field; empty if the field is NULL or the file has no such column.
    pub fn text(&self, column: &str) -> &'a str {
        self.table.place(column).map_or("", |place| &self.fields[place])
    }

    /// Returns the number in a field; `None` if the field is empty. Fails if the field has another text.
    pub fn number(&self, column: &str) -> Result<Option<f64>, CaptureError> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Some).ok_or_else(|| CaptureError::NotANumber {
            file: self.table.name.clone(),
            line: self.line,
            column: column.to_owned(),
            text: text.to_owned(),
        })
    }
}
