//! The places on drives at which the bytes of files lie.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::drive::{CONTENTS_BYTES, DriveContents, DriveFile};
use tiergraph_mem::PAGE_BYTES;

use super::Drive;
use crate::file_set::Extents;
use crate::stripe::Layout;
use crate::{FileId, FileSet};

/// Where the files of a set lie: in one row of bytes, whose units lie on drives in turn.
#[derive(Debug)]
pub(super) struct Placement {
    pub(super) files: Vec<PlacedFile>,
    /// The row's units, on the drives in the order of `drives`.
    pub(super) units: Layout,
    /// The numbers of the drives.
    pub(super) drives: Vec<usize>,
    /// The byte of each drive at which its units begin.
    pub(super) base: u64,
}

/// A file in the row: its stripes, and where each of them lies.
#[derive(Debug)]
pub(super) struct PlacedFile {
    pub(super) layout: Layout,
    /// By stripe.
    pub(super) parts: Vec<Part>,
}

impl PlacedFile {
    /// The byte of the row at which the file begins; `None` if it is in several pieces.
    pub(super) fn start(&self) -> Option<u64> {
        let [part] = &*self.parts else { return None };
        part.extents.is_empty().then_some(part.start)
    }
}

/// A stripe in the row.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The byte of the row at which the stripe, or what its extents are parts of, begins.
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

impl Placement {
    /// The pieces that hold `len` bytes of file `file` from `offset` on, each of at most as many bytes as
    /// `most` says of its drive; `None` if the drives do not hold them.
    pub(super) fn pieces(
        &self,
        file: usize,
        offset: u64,
        len: usize,
        most: impl Fn(usize) -> usize,
    ) -> Option<Vec<Piece>> {
        let file = self.files.get(file)?;
        let (mut pieces, mut begin) = (Vec::with_capacity(1), 0);
        while begin < len {
            let (stripe, within) = file.layout.locate(offset + begin as u64);
            let part = file.parts.get(stripe as usize)?;
            let at = part.start + part.extents.locate(within, PAGE_BYTES as u64)?;
            let (place, on_drive) = self.units.locate(at);
            let drive = *self.drives.get(place as usize)?;
            let left = self.units.left(at).min(file.layout.left(offset + begin as u64));
            let bytes = left.min((len - begin).min(most(drive)) as u64) as usize;
            pieces.push(Piece { drive, offset: self.base + on_drive, begin, len: bytes });
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
) -> Result<Placement> {
    let by_place = in_order(drives, held)?;
    let unit_bytes = held.iter().flatten().next().map_or(0, |contents| contents.unit_bytes);
    let file = |id| placed_file(files, id, drives, held);
    Ok(Placement {
        files: files.ids().map(file).collect::<Result<_>>()?,
        units: Layout { stripes: drives.len() as u64, unit_bytes },
        drives: by_place,
        base: CONTENTS_BYTES as u64,
    })
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
) -> Result<PlacedFile> {
    let identity = files.identity(id);
    let listed = held.iter().flatten().next().map_or(&[][..], |contents| &contents.files);
    let file = listed.iter().find(|file| file.file == identity && file.bytes == files.len(id));
    let Some(&DriveFile { start, .. }) = file else {
        let of_build = |file: &DriveFile| file.file.split('/').next().unwrap_or("").to_owned();
        let mut builds: Vec<String> = listed.iter().map(of_build).collect();
        builds.dedup();
        return Err(Error::new(ErrorKind::Input, "read a graph from the NVMe drive")
            .object(drives.first().map_or("", |drive| &drive.name))
            .expected(format!("`{identity}` of `{}` bytes", files.len(id)))
            .got(format!("a drive with files of build {}", builds.join(", ")))
            .hint("write this graph to it: `tiergraph drive write`"));
    };
    let layout = Layout { stripes: 1, unit_bytes: u64::MAX };
    Ok(PlacedFile { layout, parts: vec![Part { start, extents: Extents::default() }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_cut_at_units_at_stripes_and_at_what_a_command_moves() {
        let part = |start| Part { start, extents: Extents::default() };
        let of = |stripes| Layout { stripes, unit_bytes: 16384 };
        let placement = Placement {
            files: vec![
                PlacedFile { layout: of(1), parts: vec![part(4096)] },
                PlacedFile { layout: of(2), parts: vec![part(65536), part(131_072)] },
            ],
            units: of(2),
            drives: vec![1, 0],
            base: 1 << 20,
        };
        let most = |drive| if drive == 0 { 8192 } else { 65536 };
        let pieces = |file, offset, len| {
            let pieces = placement.pieces(file, offset, len, most).unwrap();
            pieces
                .iter()
                .map(|p| (p.drive, p.offset - (1 << 20), p.begin, p.len))
                .collect::<Vec<_>>()
        };
        // From byte 16,384 of the row: the second unit, on the second drive, which is number 0.
        assert_eq!(pieces(0, 12288, 12000), [(0, 0, 0, 8192), (0, 8192, 8192, 3808)]);
        assert_eq!(pieces(0, 0, 12289), [(1, 4096, 0, 12288), (0, 0, 12288, 1)]);
        // The second stripe's first unit begins at byte 131,072: the row's ninth unit.
        assert_eq!(pieces(1, 16384, 4096), [(1, 65536, 0, 4096)]);
        assert_eq!(placement.pieces(2, 0, 1, most), None);
    }
}
