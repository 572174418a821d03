//! Rows of numbers as lines of text, such as are read back as they were.

/// A column of numbers.
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// Unsigned integers.
    Unsigned(&'a [u64]),
    /// Signed integers.
    Signed(&'a [i64]),
    /// Floating-point numbers, each in the fewest digits that tell it from others.
    Float(&'a [f64]),
}

impl Column<'_> {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Unsigned(values) => values.len(),
            Self::Signed(values) => values.len(),
            Self::Float(values) => values.len(),
        }
    }

    /// True of a column of numbers without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bytes that a number and what follows it take, about.
const NUMBER_BYTES: usize = 10;

/// The rows of `columns`, as many as the shortest has: numbers apart by `separator`, a line a row.
///
/// ```
/// # use tiergraph_ingest::lines::{Column, lines};
/// let text = lines(&[Column::Unsigned(&[1, 20]), Column::Float(&[0.5, 1e-7])], ',');
/// assert_eq!(text, "1,0.5\n20,1e-7\n");
/// ```
pub fn lines(columns: &[Column<'_>], separator: char) -> String {
    let rows = columns.iter().map(Column::len).min().unwrap_or(0);
    let mut text = String::with_capacity(rows * columns.len() * NUMBER_BYTES);
    let (mut integer, mut float) = (itoa::Buffer::new(), zmij::Buffer::new());
    for row in 0..rows {
        for (place, column) in columns.iter().enumerate() {
            if place > 0 {
                text.push(separator);
            }
            text.push_str(match column {
                Column::Unsigned(values) => integer.format(values[row]),
                Column::Signed(values) => integer.format(values[row]),
                Column::Float(values) => float.format(values[row]),
            });
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use tiergraph_core::Draws;

    use super::*;

    #[test]
    fn numbers_are_read_back_as_they_were() {
        let mut draws = Draws::new(5);
        let bits: Vec<u64> = (0..4000).map(|_| draws.draw()).chain([0, u64::MAX, 1]).collect();
        let signed: Vec<i64> = bits.iter().map(|&bits| bits as i64).collect();
        let floats: Vec<f64> = bits.iter().map(|&bits| f64::from_bits(bits)).collect();
        let columns = [Column::Unsigned(&bits), Column::Signed(&signed), Column::Float(&floats)];
        let text = lines(&columns, ' ');
        assert_eq!(text.lines().count(), bits.len());
        for (row, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words[0].parse(), Ok(bits[row]));
            assert_eq!(words[1].parse(), Ok(signed[row]));
            let float: f64 = words[2].parse().expect("a number");
            assert!(
                float.to_bits() == floats[row].to_bits() || float.is_nan() && floats[row].is_nan()
            );
        }
    }

    #[test]
    fn no_column_and_no_row_are_no_line() {
        assert_eq!(lines(&[], ','), "");
        assert_eq!(lines(&[Column::Signed(&[]), Column::Float(&[1.0])], ','), "");
    }
}
