//! Where on drives the bytes of a file lie.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::drive::{DriveContents, DriveFile};
use tiergraph_mem::PAGE_BYTES;

use super::Drive;
use crate::file_set::Extents;
use crate::stripe::Layout;
use crate::{FileId, FileSet};

/// A file on drives: its stripes, and where each of them lies.
#[derive(Debug)]
pub(super) struct PlacedFile {
    pub(super) layout: Layout,
    /// By stripe.
    pub(super) parts: Vec<Part>,
}

/// A stripe on a drive.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) drive: usize,
    /// The byte of the drive from which on the stripe, or what its extents are parts of, lies.
    pub(super) start: u64,
    pub(super) extents: Extents,
}

/// Bytes of a read that one command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) drive: usize,
    /// The byte of the drive where they begin.
    pub(crate) offset: u64,
    /// The byte of the read where they begin.
    pub(crate) begin: usize,
    pub(crate) len: usize,
}

impl PlacedFile {
    /// The pieces that hold `len` bytes of the file from `offset` on, each of at most as many bytes as `most`
    /// says of its drive; `None` if the drives do not hold them.
    pub(super) fn pieces(
        &self,
        offset: u64,
        len: usize,
        most: impl Fn(usize) -> usize,
    ) -> Option<Vec<Piece>> {
        let (mut pieces, mut begin) = (Vec::with_capacity(1), 0);
        while begin < len {
            let at = offset + begin as u64;
            let (stripe, within) = self.layout.locate(at);
            let part = self.parts.get(stripe as usize)?;
            let unit_left = match self.layout.stripes {
                1 => u64::MAX,
                _ => self.layout.unit_bytes - at % self.layout.unit_bytes,
            };
            let bytes = unit_left.min((len - begin).min(most(part.drive)) as u64) as usize;
            let whole = bytes.next_multiple_of(PAGE_BYTES) as u64;
            let offset = part.start + part.extents.locate(within, whole)?;
            pieces.push(Piece { drive: part.drive, offset, begin, len: bytes });
            begin += bytes;
        }
        Some(pieces)
    }
}

/// Where the files of `files` lie on drives that hold what `held` says.
pub(super) fn on_written(
    files: &FileSet,
    drives: &[Drive],
    held: &[Option<DriveContents>],
) -> Result<Vec<PlacedFile>> {
    let by_place = in_order(drives, held)?;
    let file = |id| placed_file(files, id, drives, held, &by_place);
    files.ids().map(file).collect()
}

/// The numbers of the drives in the order in which they were written.
fn in_order(drives: &[Drive], held: &[Option<DriveContents>]) -> Result<Vec<usize>> {
    let refused = |drive: &Drive, expected: String, got: String| {
        Error::new(ErrorKind::Input, "read a graph from the NVMe drive")
            .object(&drive.name)
            .expected(expected)
            .got(got)
            .hint("`tiergraph drive write` writes a graph to drives, which are then named together")
    };
    let mut order = vec![None; held.len()];
    let mut first: Option<&DriveContents> = None;
    for (number, (drive, contents)) in drives.iter().zip(held).enumerate() {
        let Some(contents) = contents else {
            let got = "a drive that tiergraph has not written".to_owned();
            return Err(refused(drive, "a graph".into(), got));
        };
        let first = *first.get_or_insert(contents);
        let is_one_of_them = contents.written_id == first.written_id
            && contents.drives == held.len()
            && order.get(contents.drive).is_some_and(Option::is_none);
        if !is_one_of_them {
            let expected = format!("the drives that were written together, `{}`", contents.drives);
            let got = format!("drive `{}` of writing {}", contents.drive, contents.written_id);
            return Err(refused(drive, expected, format!("{got}, with `{}` named", held.len())));
        }
        order[contents.drive] = Some(number);
    }
    Ok(order.into_iter().flatten().collect())
}

fn placed_file(
    files: &FileSet,
    id: FileId,
    drives: &[Drive],
    held: &[Option<DriveContents>],
    by_place: &[usize],
) -> Result<PlacedFile> {
    let identity = files.identity(id);
    let listed = held.iter().flatten().next().map_or(&[][..], |contents| &contents.files);
    let file = listed.iter().find(|file| file.file == identity && file.bytes == files.len(id));
    let Some(&DriveFile { unit_bytes, start, .. }) = file else {
        let of_build = |file: &DriveFile| file.file.split('/').next().unwrap_or("").to_owned();
        let mut builds: Vec<String> = listed.iter().map(of_build).collect();
        builds.dedup();
        return Err(Error::new(ErrorKind::Input, "read a graph from the NVMe drive")
            .object(drives.first().map_or("", |drive| &drive.name))
            .expected(format!("`{identity}` of `{}` bytes", files.len(id)))
            .got(format!("a drive with files of build {}", builds.join(", ")))
            .hint("write this graph to it: `tiergraph drive write`"));
    };
    let layout = Layout { stripes: by_place.len() as u64, unit_bytes };
    let part = |&drive: &usize| Part { drive, start, extents: Extents::default() };
    Ok(PlacedFile { layout, parts: by_place.iter().map(part).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_cut_at_units_and_at_what_a_command_moves() {
        let part = |drive| Part { drive, start: 1 << 20, extents: Extents::default() };
        let layout = Layout { stripes: 2, unit_bytes: 16384 };
        let file = PlacedFile { layout, parts: vec![part(0), part(1)] };
        let most = |drive| if drive == 0 { 8192 } else { 65536 };
        let pieces = file.pieces(12288, 20000, most).unwrap();
        let expected = [(0, 12288, 0, 4096), (1, 0, 4096, 15904)];
        let expected: Vec<Piece> = expected
            .into_iter()
            .map(|(drive, at, begin, len)| Piece { drive, offset: (1 << 20) + at, begin, len })
            .collect();
        assert_eq!(pieces, expected);
        let pieces = file.pieces(32768, 16384, most).unwrap();
        assert_eq!(pieces.iter().map(|piece| piece.len).collect::<Vec<_>>(), [8192, 8192]);
        assert_eq!(pieces[1].offset, (1 << 20) + 16384 + 8192);
    }
}
