//! The properties of a BVGraph, from `NAME.properties`: sizes, window and codes.

use std::fs;
use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result};

use super::bits::Code;

/// The longest window that is read: a longer one keeps more lists in memory than any graph gains from.
const MAX_WINDOW: u64 = 1 << 16;

/// The properties of a BVGraph that decoding needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Properties {
    pub nodes: u64,
    pub arcs: u64,
    /// The number of earlier lists that a list may refer to.
    pub window: usize,
    /// The shortest run that is written as an interval; 0 if none is.
    pub min_interval: u64,
    pub outdegrees: Code,
    pub references: Code,
    pub block_counts: Code,
    pub blocks: Code,
    pub residuals: Code,
}

impl Properties {
    /// Reads a Java properties file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|e| Error::io("read", path.display(), e))?;
        Self::parse(&text).map_err(|(key, expected, got)| {
            Error::new(ErrorKind::Input, format!("read `{key}` in"))
                .object(path.display())
                .expected(expected)
                .got(got)
        })
    }

    fn parse(text: &str) -> Result<Self, Mismatch> {
        let value = |key| value(text, key);
        let class = value("graphclass").unwrap_or("none");
        if !class.ends_with("BVGraph") {
            return Err(("graphclass", "a BVGraph", format!("`{class}`")));
        }
        for (key, wanted) in [("version", "0"), ("endianness", "big")] {
            if let Some(got) = value(key).filter(|got| *got != wanted) {
                return Err((key, wanted, format!("`{got}`")));
            }
        }
        let number = |key: &'static str, default: Option<u64>| match value(key) {
            Some(text) => text.parse().map_err(|_| (key, "a number", format!("`{text}`"))),
            None => default.ok_or((key, "a number", "nothing".to_string())),
        };
        let window = number("windowsize", Some(7))?;
        if window > MAX_WINDOW {
            return Err(("windowsize", "at most 65536", format!("`{window}`")));
        }
        let k = number("zetak", Some(3))?;
        let zeta = u32::try_from(k).ok().filter(|k| (1..=16).contains(k));
        let zeta = zeta.ok_or(("zetak", "a number from 1 to 16", format!("`{k}`")))?;
        let mut properties = Self {
            nodes: number("nodes", None)?,
            arcs: number("arcs", None)?,
            window: window as usize,
            min_interval: number("minintervallength", Some(4))?,
            outdegrees: Code::Gamma,
            references: Code::Unary,
            block_counts: Code::Gamma,
            blocks: Code::Gamma,
            residuals: Code::Zeta(zeta),
        };
        for flag in value("compressionflags").unwrap_or_default().split('|') {
            properties.apply(flag.trim(), zeta)?;
        }
        Ok(properties)
    }

    /// Sets one code from a flag such as `RESIDUALS_GAMMA`.
    fn apply(&mut self, flag: &str, zeta: u32) -> Result<(), Mismatch> {
        if flag.is_empty() {
            return Ok(());
        }
        let unknown = || ("compressionflags", "codes that this reader has", format!("`{flag}`"));
        let (part, code) = flag.rsplit_once('_').ok_or_else(unknown)?;
        let code = match code {
            "UNARY" => Code::Unary,
            "GAMMA" => Code::Gamma,
            "DELTA" => Code::Delta,
            "ZETA" => Code::Zeta(zeta),
            _ => return Err(unknown()),
        };
        let target = match part {
            "OUTDEGREES" => &mut self.outdegrees,
            "REFERENCES" => &mut self.references,
            "BLOCK_COUNT" => &mut self.block_counts,
            "BLOCKS" => &mut self.blocks,
            "RESIDUALS" => &mut self.residuals,
            // Offsets are not read.
            "OFFSETS" => return Ok(()),
            _ => return Err(unknown()),
        };
        *target = code;
        Ok(())
    }
}

/// The value of the property `key`; `None` without it.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

/// A property that cannot be used: its name, what was expected, what it is.
type Mismatch = (&'static str, &'static str, String);

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = "graphclass=it.unimi.dsi.webgraph.BVGraph\nnodes=4\narcs=2\n";

    #[test]
    fn flags_replace_the_default_codes() {
        let text = format!("{MINIMAL}zetak=5\ncompressionflags=RESIDUALS_DELTA | BLOCKS_ZETA\n");
        let properties = Properties::parse(&text).unwrap();
        assert_eq!(properties.residuals, Code::Delta);
        assert_eq!(properties.blocks, Code::Zeta(5));
        assert_eq!(properties.references, Code::Unary);
    }

    #[test]
    fn what_cannot_be_decoded_is_named() {
        let got = |line: &str| Properties::parse(&format!("{line}\n{MINIMAL}")).unwrap_err();
        assert_eq!(got("endianness=little"), ("endianness", "big", "`little`".into()));
        assert_eq!(got("version=1").0, "version");
        assert_eq!(got("compressionflags=RESIDUALS_NIBBLE").2, "`RESIDUALS_NIBBLE`");
        assert_eq!(got("zetak=0").0, "zetak");
        assert_eq!(Properties::parse("nodes=1").unwrap_err().0, "graphclass");
    }
}
