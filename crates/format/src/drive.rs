//! What a raw drive holds: the files of a graph, or of several, one behind the other.
//!
//! The drive's first bytes are [`MAGIC`], the length of what follows as 32 bits in little-endian order, and
//! the [`DriveContents`] as sealed JSON. All of that lies in the first [`CONTENTS_BYTES`]. Behind them are
//! the files, each from a multiple of 4 KiB on. On several drives units of them lie in turn, as on stripes.

use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result};

use crate::seal::{FORMAT_VERSION, parse_sealed, seal};

/// The first bytes of a drive that tiergraph has written.
pub const MAGIC: [u8; 16] = *b"tiergraph drive\n";
/// Bytes at a drive's start that are kept for the description of what it holds.
pub const CONTENTS_BYTES: usize = 4 << 20;

const LENGTH_AT: usize = MAGIC.len();
const TEXT_AT: usize = LENGTH_AT + 4;

/// The description of what a drive holds: its files and their places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveContents {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// Distinguishes one writing from any other; all drives that were written together have the same.
    pub written_id: String,
    /// The drive's number among these, from 0 on.
    pub drive: usize,
    /// The number of drives that were written together.
    pub drives: usize,
    /// Bytes of a unit: unit i of all files together lies on drive i mod n.
    pub unit_bytes: u64,
    /// The files, in the order of their places.
    pub files: Vec<DriveFile>,
}

/// A file on a drive, or on several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveFile {
    /// Which file it is: the graph's build id, `/`, and the file's name in the manifest.
    pub file: String,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// The byte of all files together at which it begins.
    pub start: u64,
}

impl DriveContents {
    /// The contents of drive number `drive` of `drives` that are written together.
    pub fn new(
        written_id: String,
        drive: usize,
        drives: usize,
        unit_bytes: u64,
        files: Vec<DriveFile>,
    ) -> Self {
        Self { format_version: FORMAT_VERSION, written_id, drive, drives, unit_bytes, files }
    }

    /// The drive's first bytes: whole pages of 4 KiB.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for more files than are described in [`CONTENTS_BYTES`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let text = seal(self)?;
        let bytes = (TEXT_AT + text.len()).next_multiple_of(4096);
        if bytes > CONTENTS_BYTES {
            return Err(Error::new(ErrorKind::Input, "describe the files of a drive")
                .expected(format!("at most `{CONTENTS_BYTES}` bytes"))
                .got(format!("`{bytes}`, of `{}` files", self.files.len())));
        }
        let mut page = vec![0; bytes];
        page[..LENGTH_AT].copy_from_slice(&MAGIC);
        page[LENGTH_AT..TEXT_AT].copy_from_slice(&(text.len() as u32).to_le_bytes());
        page[TEXT_AT..TEXT_AT + text.len()].copy_from_slice(text.as_bytes());
        Ok(page)
    }

    /// How many of a drive's first bytes, whole pages of 4 KiB, hold the contents that begin with the page
    /// `first`; a page for a drive that tiergraph has not written.
    pub fn bytes_of(first: &[u8]) -> usize {
        let len = first.strip_prefix(&MAGIC).and_then(|rest| rest.first_chunk::<4>());
        let len = len.map_or(0, |len| u32::from_le_bytes(*len) as usize);
        (TEXT_AT + len).next_multiple_of(4096).min(CONTENTS_BYTES)
    }

    /// Reads the contents in a drive's first bytes, [as many](Self::bytes_of) as hold them; `None` for a
    /// drive that tiergraph has not written. `drive` names it in errors.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] for contents that are damaged or of another version.
    pub fn from_bytes(bytes: &[u8], drive: &str) -> Result<Option<Self>> {
        let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Ok(None) };
        let text = rest
            .split_first_chunk::<4>()
            .and_then(|(len, rest)| rest.get(..u32::from_le_bytes(*len) as usize));
        let hint = "write the graph to the drive again: `tiergraph drive write`";
        let damaged = || {
            Error::new(ErrorKind::Format, "read the contents of drive")
                .object(drive)
                .got("contents that are cut short")
        };
        let text = text.ok_or_else(|| damaged().hint(hint))?;
        let contents: Self = parse_sealed(text, drive).map_err(|error| error.hint(hint))?;
        if !contents.is_possible() {
            return Err(damaged().got("units, drives or places that cannot be").hint(hint));
        }
        Ok(Some(contents))
    }

    fn is_possible(&self) -> bool {
        let is_whole = |bytes: u64| bytes.is_multiple_of(4096);
        let ends = |file: &DriveFile| file.start.checked_add(file.bytes).is_some();
        self.drive < self.drives
            && self.unit_bytes > 0
            && is_whole(self.unit_bytes)
            && self.files.iter().all(|file| is_whole(file.start) && ends(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents() -> DriveContents {
        let file =
            |name: &str, start| DriveFile { file: format!("00c0ffee/{name}"), bytes: 5000, start };
        let files = vec![file("tiles.blocks", 0), file("out.rows", 8192)];
        DriveContents::new("1234".into(), 1, 2, 4096, files)
    }

    #[test]
    fn contents_are_read_as_they_are_written() {
        let bytes = contents().to_bytes().unwrap();
        assert!(bytes.len().is_multiple_of(4096) && bytes.starts_with(&MAGIC));
        assert_eq!(DriveContents::bytes_of(&bytes[..4096]), bytes.len());
        assert_eq!(DriveContents::bytes_of(&[0xff; 4096]), 4096);
        assert_eq!(DriveContents::from_bytes(&bytes, "d").unwrap(), Some(contents()));
        assert_eq!(DriveContents::from_bytes(&[0; 4096], "d").unwrap(), None, "another's drive");
    }

    #[test]
    fn contents_that_cannot_be_are_an_error() {
        let change: [fn(&mut DriveContents); 5] = [
            |contents| contents.unit_bytes = 0,
            |contents| contents.unit_bytes = 5000,
            |contents| contents.drive = 2,
            |contents| contents.files[1].start = 4095,
            |contents| contents.files[0].bytes = u64::MAX - 4000,
        ];
        for (number, change) in change.into_iter().enumerate() {
            let mut wrong = contents();
            wrong.files[0].start = 8192;
            change(&mut wrong);
            let bytes = wrong.to_bytes().unwrap();
            let error = DriveContents::from_bytes(&bytes, "0000:01:00.0").unwrap_err();
            assert!(error.to_string().contains("cannot be"), "change {number}: {error}");
        }
    }

    #[test]
    fn damaged_contents_are_an_error_and_never_other_contents() {
        let bytes = contents().to_bytes().unwrap();
        let end = bytes.iter().rposition(|&byte| byte != 0).unwrap();
        for at in MAGIC.len()..=end {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let error = DriveContents::from_bytes(&damaged, "0000:01:00.0").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format, "byte {at}");
            assert!(error.to_string().contains("drive write"), "{error}");
        }
        assert!(DriveContents::from_bytes(&bytes[..end], "d").is_err(), "cut short");
    }
}
