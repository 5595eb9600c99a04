//! The result of a contest: tables, as data, and text.

use std::fmt;

/// The result of a contest, in the order in which it is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Its tables and paragraphs.
    pub parts: Vec<Part>,
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Figures.
    Table(Table),
    /// A paragraph or a drawing, with a line feed between two lines.
    Text(String),
}

/// A table of figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The cell that was measured, or what its rows have in common.
    pub title: String,
    /// The names of the columns, without that of the rows' names.
    pub columns: Vec<String>,
    /// The rows, with a value for each column.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The contestant.
    pub name: String,
    /// A value for each column.
    pub values: Vec<Value>,
}

/// A value in a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A figure, and the number of digits behind the point that are worth reading.
    Number(f64, usize),
    /// A word, such as the name of a cell.
    Text(String),
    /// Nothing was measured.
    Missing,
}

impl Value {
    /// Returns a number, or `Missing` for NaN.
    #[must_use]
    pub fn number(figure: f64, decimals: usize) -> Self {
        if figure.is_nan() { Self::Missing } else { Self::Number(figure, decimals) }
    }
}

impl Report {
    /// Returns the tables without the text.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.parts.iter().filter_map(|part| match part {
            Part::Table(table) => Some(table),
            Part::Text(_) => None,
        })
    }

    /// Returns whether nothing was measured: no cell was selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.parts.push(Part::Table(table));
    }

    pub(crate) fn text(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Text(text.into()));
    }
}

/// Writes all parts, with an empty line between two.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            match part {
                Part::Table(table) => table.fmt(f)?,
                Part::Text(text) => writeln!(f, "{text}")?,
            }
        }
        Ok(())
    }
}

/// Writes the title, the names of the columns, and a line for each row. All columns are as wide as
/// their widest value.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |text: &str| text.chars().count();
        let shown: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.values.iter().map(Value::to_string).collect()).collect();
        let first = self.rows.iter().map(|row| width(&row.name)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let values = shown.iter().filter_map(|row| row.get(column));
                values.chain([&self.columns[column]]).map(|text| width(text)).max().unwrap_or(0)
            })
            .collect();
        writeln!(f, "{}", self.title)?;
        write!(f, "  {:first$}", "")?;
        for (column, width) in self.columns.iter().zip(&widths) {
            write!(f, "  {column:>width$}")?;
        }
        writeln!(f)?;
        for (row, shown) in self.rows.iter().zip(&shown) {
            write!(f, "  {:first$}", row.name)?;
            for (value, width) in shown.iter().zip(&widths) {
                write!(f, "  {value:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(figure, decimals) => write!(f, "{figure:.decimals$}"),
            Self::Text(text) => f.write_str(text),
            Self::Missing => f.write_str("-"),
        }
    }
}
