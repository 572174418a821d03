//! The header of a `.npy` file (NumPy Enhancement Proposal 1, and `numpy.lib.format`), for arrays of any
//! numbers.
//!
//! Six bytes of magic, two of version, the length of the header (2 bytes in version 1, 4 after),
//! then a Python dictionary `{'descr': '<f4', 'fortran_order': False, 'shape': (N, D), }`.

use std::fmt;
use std::io::Read;

use tiergraph_core::{Error, ErrorKind, Result};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// A header longer than this is not that of an array of numbers.
const MOST_BYTES: usize = 1 << 20;
/// Data begin at a multiple of this.
const ALIGN: usize = 64;

/// The kinds of NumPy's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Signed,
    Unsigned,
    Float,
}

/// A type of NumPy's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) kind: Kind,
    /// Bytes of a number: 1, 2, 4 or 8.
    pub(crate) bytes: usize,
    pub(crate) big_endian: bool,
}

impl fmt::Display for Number {
    /// As NumPy calls it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match (self.bytes, self.big_endian) {
            (1, _) => '|',
            (_, true) => '>',
            (_, false) => '<',
        };
        let kind = match self.kind {
            Kind::Bool => 'b',
            Kind::Signed => 'i',
            Kind::Unsigned => 'u',
            Kind::Float => 'f',
        };
        write!(f, "'{order}{kind}{}'", self.bytes)
    }
}

/// A parsed header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub(crate) number: Number,
    pub(crate) shape: Vec<u64>,
    /// Whether the first index varies fastest: Fortran order, not C order.
    pub(crate) fortran: bool,
    /// The bytes of the header.
    pub(crate) raw: Vec<u8>,
}

impl NpyHeader {
    /// Reads a header, which must be that of an array in C order; `name` is the array's in errors.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for anything but numbers in C order.
    pub(crate) fn read(from: &mut dyn Read, name: &str) -> Result<Self> {
        let header = Self::read_any(from, name)?;
        if !header.fortran {
            return Ok(header);
        }
        Err(Error::new(ErrorKind::Input, "read")
            .object(name)
            .expected("an array in C order")
            .got("one in Fortran order")
            .hint("`numpy.save(path, numpy.ascontiguousarray(x))` writes it in C order"))
    }

    /// Reads a header; `name` is the array's in errors.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for anything but numbers.
    pub(crate) fn read_any(from: &mut dyn Read, name: &str) -> Result<Self> {
        let refuse = |expected: &str, got: String| {
            Error::new(ErrorKind::Input, "read").object(name).expected(expected).got(got)
        };
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                refuse("a NumPy array", "a file that ends before its header does".into())
            }
            _ => Error::io("read the header of", name, e),
        };
        let mut raw = vec![0; MAGIC.len() + 2];
        from.read_exact(&mut raw).map_err(failed)?;
        if raw[..6] != *MAGIC || !(1..=3).contains(&raw[6]) {
            return Err(refuse("a NumPy array of version 1 to 3", "other bytes".into()));
        }
        let len_bytes = if raw[6] == 1 { 2 } else { 4 };
        let mut len = [0; 4];
        from.read_exact(&mut len[..len_bytes]).map_err(failed)?;
        raw.extend_from_slice(&len[..len_bytes]);
        let (at, len) = (raw.len(), u32::from_le_bytes(len) as usize);
        if len > MOST_BYTES {
            return Err(refuse("a header of at most 1 MiB", format!("{len} bytes")));
        }
        raw.resize(at + len, 0);
        from.read_exact(&mut raw[at..]).map_err(failed)?;
        let text = String::from_utf8_lossy(&raw[at..]).into_owned();
        let fortran = match value(&text, "fortran_order") {
            Some("True") => true,
            Some("False") => false,
            other => return Err(refuse("`fortran_order`", other.unwrap_or("none").into())),
        };
        let descr = value(&text, "descr").unwrap_or_default();
        let number = number(descr.trim_matches(['\'', '"']))
            .ok_or_else(|| refuse("an array of numbers", format!("the type {descr}")))?;
        let shape = value(&text, "shape").unwrap_or_default();
        let sizes = sizes(shape).ok_or_else(|| refuse("a shape", shape.into()))?;
        Ok(Self { number, shape: sizes, fortran, raw })
    }

    /// The shape as NumPy writes it.
    pub(crate) fn shape_text(&self) -> String {
        match self.shape[..] {
            [one] => format!("({one},)"),
            _ => {
                let sizes: Vec<String> = self.shape.iter().map(u64::to_string).collect();
                format!("({})", sizes.join(", "))
            }
        }
    }

    /// The number of elements in the array; `None` if it overflows.
    pub(crate) fn elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size))
    }

    /// Bytes of the array's elements; `None` if they overflow.
    pub(crate) fn data_bytes(&self) -> Option<u64> {
        self.elements()?.checked_mul(self.number.bytes as u64)
    }
}

/// The header of an array of `shape` in C order, of the type that NumPy calls `descr`.
pub fn header_of(descr: &str, shape: &[u64]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
    let before = MAGIC.len() + 4;
    let padded = (before + text.len() + 1).next_multiple_of(ALIGN) - before;
    let mut raw = MAGIC.to_vec();
    raw.extend_from_slice(&[1, 0]);
    raw.extend_from_slice(&(padded as u16).to_le_bytes());
    raw.extend_from_slice(format!("{text:<width$}\n", width = padded - 1).as_bytes());
    raw
}

/// The text of the value that the dictionary has for `key`; `None` without that key.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.split_once(&format!("'{key}'"))?.1.trim_start().strip_prefix(':')?.trim_start();
    let end = if rest.starts_with('(') { rest.find(')')? + 1 } else { rest.find([',', '}'])? };
    Some(rest[..end].trim())
}

fn sizes(shape: &str) -> Option<Vec<u64>> {
    let inner = shape.strip_prefix('(')?.strip_suffix(')')?;
    let sizes = inner.split(',').map(str::trim).filter(|size| !size.is_empty());
    sizes.map(|size| size.parse().ok()).collect()
}

fn number(descr: &str) -> Option<Number> {
    let (order, kind) = descr.split_at_checked(1)?;
    let (kind, bytes) = kind.split_at_checked(1)?;
    let (kind, widths): (Kind, &[usize]) = match kind {
        "b" => (Kind::Bool, &[1]),
        "i" => (Kind::Signed, &[1, 2, 4, 8]),
        "u" => (Kind::Unsigned, &[1, 2, 4, 8]),
        "f" => (Kind::Float, &[2, 4, 8]),
        _ => return None,
    };
    let bytes = bytes.parse().ok().filter(|bytes| widths.contains(bytes))?;
    let big_endian = match order {
        ">" => true,
        "<" | "|" | "=" => false,
        _ => return None,
    };
    Some(Number { kind, bytes, big_endian })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(descr: &str, order: &str, shape: &str) -> Result<NpyHeader> {
        let text =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        NpyHeader::read(&mut &bytes[..], "x.npy")
    }

    #[test]
    fn numbers_and_shapes_are_read() {
        for (descr, kind, bytes, big_endian) in [
            ("<f4", Kind::Float, 4, false),
            (">f2", Kind::Float, 2, true),
            ("|b1", Kind::Bool, 1, false),
            ("<i8", Kind::Signed, 8, false),
            ("|u1", Kind::Unsigned, 1, false),
        ] {
            let header = parse(descr, "False", "(5, 3)").unwrap();
            assert_eq!(header.number, Number { kind, bytes, big_endian }, "{descr}");
            assert_eq!(header.number.to_string(), format!("'{descr}'"));
            assert_eq!(header.data_bytes(), Some(15 * bytes as u64));
        }
        let column = parse("<f4", "False", "(7,)").unwrap();
        assert_eq!((&column.shape[..], column.shape_text()), (&[7][..], "(7,)".into()));
        assert_eq!(parse("<f4", "False", "(7, 2)").unwrap().shape_text(), "(7, 2)");
        assert_eq!(parse("<f4", "False", "()").unwrap().elements(), Some(1));
        let huge = parse("<f8", "False", "(9223372036854775807, 4)").unwrap();
        assert_eq!(huge.data_bytes(), None);
    }

    #[test]
    fn what_cannot_be_streamed_is_refused() {
        let refused = |descr, order, shape| parse(descr, order, shape).unwrap_err().to_string();
        assert_eq!(
            refused("<f4", "True", "(5, 3)"),
            "cannot read `x.npy`: expected an array in C order, got one in Fortran order\n\nhint: \
             `numpy.save(path, numpy.ascontiguousarray(x))` writes it in C order"
        );
        assert!(refused("|O", "False", "(5,)").contains("got the type '|O'"));
        assert!(refused("<f4", "False", "(5, x)").contains("got (5, x)"));
        let short = NpyHeader::read(&mut &b"\x93NUM"[..], "x.npy").unwrap_err();
        assert!(short.to_string().contains("got a file that ends before its header does"));
    }

    #[test]
    fn a_header_that_is_written_is_read() {
        for shape in [&[3][..], &[1 << 40, 128], &[]] {
            let raw = header_of("<i8", shape);
            assert!(raw.len().is_multiple_of(ALIGN));
            let header = NpyHeader::read(&mut &raw[..], "y.npy").unwrap();
            assert_eq!((&header.shape[..], header.raw), (shape, raw));
        }
    }
}
