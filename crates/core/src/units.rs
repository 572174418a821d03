//! Byte sizes as users write and read them.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind, Result};

/// A number of bytes that reads `2GiB`, `512M` or `1048576` and prints `2.0 GiB`.
///
/// Suffixes without `i` (`K M G T`, `KB …`) mean the same powers of 1024.
///
/// ```
/// use tiergraph_core::ByteSize;
/// assert_eq!("1.5GiB".parse::<ByteSize>().unwrap().0, 3 << 29);
/// assert_eq!(ByteSize(3 << 29).to_string(), "1.5 GiB");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

const SUFFIXES: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

impl FromStr for ByteSize {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let error = |expected: &str| {
            Error::new(ErrorKind::Input, "read the size").object(text).expected(expected)
        };
        let bad = || error("a number of bytes like `2GiB`, `512M` or `1048576`");
        let trimmed = text.trim();
        let split =
            trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, suffix) = trimmed.split_at(split);
        let number: f64 = number.parse().map_err(|_| bad())?;
        let power = match suffix.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 1,
            "m" | "mb" | "mib" => 2,
            "g" | "gb" | "gib" => 3,
            "t" | "tb" | "tib" => 4,
            _ => return Err(bad()),
        };
        // A plain number is exact.
        if let (0, Ok(exact)) = (power, trimmed[..split].parse()) {
            return Ok(Self(exact));
        }
        let bytes = number * 1024f64.powi(power);
        if bytes < 2f64.powi(64) {
            Ok(Self(bytes as u64))
        } else {
            Err(error("fewer than 2^64 bytes"))
        }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        let mut suffix = 0;
        while value >= 1024.0 && suffix + 1 < SUFFIXES.len() {
            value /= 1024.0;
            suffix += 1;
        }
        if suffix == 0 {
            return write!(f, "{} B", self.0);
        }
        write!(f, "{value:.1} {}", SUFFIXES[suffix])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_size_says_what_a_good_one_is() {
        let e = "2 parsecs".parse::<ByteSize>().unwrap_err();
        assert_eq!(
            e.to_string(),
            "cannot read the size `2 parsecs`: expected a number of bytes like `2GiB`, `512M` or \
             `1048576`"
        );
    }

    #[test]
    fn sizes_are_exact_and_below_2_to_the_64() {
        let bytes = |text: &str| text.parse::<ByteSize>().map(|size| size.0);
        assert_eq!(bytes("18446744073709551615").unwrap(), u64::MAX);
        assert_eq!(bytes("9007199254740993").unwrap(), (1 << 53) + 1);
        for text in ["18446744073709551616", "100000000000000000000", "16777216TiB"] {
            let error = bytes(text).unwrap_err().to_string();
            assert!(error.contains("fewer than 2^64 bytes"), "{error}");
        }
    }
}
