//! Files on stripes and extents: which bytes a read gets, and which pieces a file is read in.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{PAGE, TestFile, byte_at, run};
use tiergraph_core::ErrorKind;
use tiergraph_io::{EngineChoice, Extent, FileId, FileSet, Read, StripeSource, Wait, open_engine};
use tiergraph_mem::AlignedBuf;

fn extent(start: usize, len: usize) -> Extent {
    Extent { start: start as u64, len: len as u64 }
}

fn source(path: &Path, extents: &[Extent]) -> StripeSource {
    StripeSource { path: path.to_path_buf(), extents: extents.to_vec() }
}

/// The bytes of a file, read page after page, or the error of the first page that cannot be read.
fn contents(files: FileSet, file: FileId) -> Result<Vec<u8>, String> {
    let len = files.len(file) as usize;
    let (mut engine, _) = open_engine(EngineChoice::Posix, &Arc::new(files), 4).unwrap();
    let read = |page: usize| {
        let to = AlignedBuf::zeroed(PAGE).unwrap().into();
        Read { file, offset: (page * PAGE) as u64, len: PAGE, to, at: 0, tag: page as u64 }
    };
    let mut done = run(&mut *engine, (0..len.div_ceil(PAGE)).map(read).collect(), Wait::All);
    done.sort_by_key(|done| done.tag);
    let mut bytes = Vec::new();
    for done in done {
        let count = done.result.map_err(|error| error.to_string())?;
        assert!(done.to.bytes()[count..].iter().all(|&byte| byte == 0), "zeros past the end");
        bytes.extend_from_slice(&done.to.bytes()[..count]);
    }
    assert_eq!(bytes.len(), len);
    Ok(bytes)
}

/// What a device holds in these extents.
fn held(extents: &[Extent]) -> Vec<u8> {
    extents.iter().flat_map(|e| (e.start..e.start + e.len).map(byte_at)).collect()
}

#[test]
fn a_file_is_the_bytes_of_its_extents_one_after_the_other() {
    let device = TestFile::new(64 * PAGE, 1, PAGE);
    for extents in [
        &[extent(3 * PAGE, 5 * PAGE)][..],
        &[extent(9 * PAGE, PAGE), extent(0, 3 * PAGE), extent(60 * PAGE, 4 * PAGE)],
        // The last extent may end inside a page, behind which the device goes on, or have no bytes.
        &[extent(8 * PAGE, 2 * PAGE), extent(PAGE, PAGE + 100)],
        &[extent(8 * PAGE, 2 * PAGE), extent(PAGE, 0)],
    ] {
        let mut files = FileSet::new();
        let stripe = source(&device.paths[0], extents);
        let file = files.open_extents(&[stripe], PAGE as u64).unwrap();
        assert_eq!(contents(files, file).unwrap(), held(extents), "{extents:?}");
    }
}

#[test]
fn extents_on_several_devices_take_turns() {
    let device = TestFile::new(64 * PAGE, 1, PAGE);
    let (one, other) =
        ([extent(4 * PAGE, 2 * PAGE), extent(0, 2 * PAGE)], [extent(32 * PAGE, 2 * PAGE)]);
    let stripes = [source(&device.paths[0], &one), source(&device.paths[0], &other)];
    let unit = 2 * PAGE;
    let mut files = FileSet::new();
    let file = files.open_extents(&stripes, unit as u64).unwrap();
    let (one, other) = (held(&one), held(&other));
    let expected = [&one[..unit], &other[..], &one[unit..]].concat();
    assert_eq!(contents(files, file).unwrap(), expected);
}

#[test]
fn extents_are_whole_pages_inside_their_device() {
    let device = TestFile::new(16 * PAGE, 1, PAGE);
    let path = &device.paths[0];
    let good = extent(0, PAGE);
    for (extents, wrong) in [
        (vec![extent(15 * PAGE, 2 * PAGE)], (2 * PAGE, 15 * PAGE)),
        (vec![extent(512, PAGE)], (PAGE, 512)),
        (vec![extent(0, 100), good], (100, 0)),
        (vec![extent(PAGE, 0), good], (0, PAGE)),
        (vec![good, extent(usize::MAX - PAGE + 1, PAGE)], (PAGE, usize::MAX - PAGE + 1)),
    ] {
        let error =
            FileSet::new().open_extents(&[source(path, &extents)], PAGE as u64).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert_eq!(
            error.to_string(),
            format!(
                "cannot open the extents of `{}`: expected whole pages of `4.0 KiB` inside its \
                 `65536` bytes, got `{}` bytes at `{}`",
                path.display(),
                wrong.0,
                wrong.1
            )
        );
    }
}

#[test]
fn a_read_lies_in_one_extent() {
    let device = TestFile::new(16 * PAGE, 1, PAGE);
    let mut files = FileSet::new();
    let extents = [extent(8 * PAGE, 3 * PAGE), extent(PAGE, 2 * PAGE), extent(5 * PAGE, PAGE)];
    let file = files.open_extents(&[source(&device.paths[0], &extents)], PAGE as u64).unwrap();
    let (mut engine, _) = open_engine(EngineChoice::Posix, &Arc::new(files), 4).unwrap();
    let extent_of = |page: usize| [0, 0, 0, 1, 1, 2][page];
    for first in 0..6 {
        for pages in 1..=6 - first {
            let read = Read { file, ..device.read(first * PAGE, pages * PAGE, 0) };
            let done = run(&mut *engine, vec![read], Wait::One).remove(0);
            let is_inside = extent_of(first) == extent_of(first + pages - 1);
            match done.result {
                Ok(bytes) => assert!(is_inside && bytes == pages * PAGE),
                Err(error) => {
                    assert!(!is_inside, "{error}");
                    assert_eq!(
                        error.to_string(),
                        format!(
                            "cannot read `{}`: expected a read inside one extent, got `{}` bytes at \
                             offset `{}`",
                            device.paths[0].display(),
                            pages * PAGE,
                            first * PAGE
                        )
                    );
                }
            }
        }
    }
}

#[test]
fn pieces_never_cross_a_unit_and_are_the_largest_that_do_not() {
    let limits = [PAGE, 2 * PAGE, 3 * PAGE, 4 * PAGE, 6 * PAGE, 64 * PAGE, 65 * PAGE];
    let whole = TestFile::new(256 * PAGE, 1, 4 * PAGE);
    assert_eq!(limits.map(|limit| whole.files.piece_bytes(whole.file, limit)), limits);
    let striped = TestFile::new(256 * PAGE, 2, 4 * PAGE);
    let pieces = limits.map(|limit| striped.files.piece_bytes(striped.file, limit) / PAGE);
    assert_eq!(pieces, [1, 2, 1, 4, 2, 4, 1]);
}

#[test]
fn a_set_names_its_files_in_the_order_in_which_they_were_opened() {
    let test = TestFile::new(16 * PAGE, 2, PAGE);
    let mut files = FileSet::new();
    assert!(files.is_empty());
    let first = files.open(&test.paths[0]).unwrap();
    let both = files.open_striped(&test.paths, PAGE as u64).unwrap();
    assert!(!files.is_empty());
    assert_eq!([first, both].map(|file| files.len(file)), [8 * PAGE as u64, 16 * PAGE as u64]);
    let paths: Vec<PathBuf> = files.accesses().map(|(path, _)| path.to_path_buf()).collect();
    assert_eq!(paths, [&test.paths[0], &test.paths[0], &test.paths[1]].map(PathBuf::clone));
    assert_eq!(contents(files, both).unwrap(), held(&[extent(0, 16 * PAGE)]));
}

#[test]
fn units_are_whole_pages_of_at_least_one_stripe() {
    let test = TestFile::new(16 * PAGE, 1, PAGE);
    for (paths, unit) in [(&[][..], PAGE), (&test.paths, 0), (&test.paths, 1000)] {
        let error = FileSet::new().open_striped(paths, unit as u64).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains(&format!("got {} paths and `{unit}`", paths.len())));
    }
}

#[test]
fn offsets_lengths_and_places_in_a_buffer_are_whole_pages() {
    let test = TestFile::new(16 * PAGE, 1, PAGE);
    let read = |offset, len, at| Read { len, at, ..test.read(offset, 4 * PAGE, 0) };
    let refused = |read: Read| {
        let mut engine = test.engines(1).remove(0);
        let done = run(&mut *engine, vec![read], Wait::One).remove(0);
        done.result.expect_err("the read cannot be done").to_string()
    };
    for (offset, len, at) in [(512, PAGE, 0), (0, 512, 0), (0, PAGE, 512)] {
        let said =
            format!("expected multiples of `4.0 KiB`, got `{len}` bytes at offset `{offset}`");
        assert!(refused(read(offset, len, at)).ends_with(&said), "{said}");
    }
    for (len, at, room) in [(5 * PAGE, 0, "16.0"), (4 * PAGE, PAGE, "12.0"), (PAGE, 5 * PAGE, "0")]
    {
        let error = refused(read(0, len, at));
        assert!(error.contains(&format!("expected at most the buffer's `{room}")), "{error}");
    }
    assert!(test.engines(1).iter_mut().all(|engine| {
        let done = run(&mut **engine, vec![read(PAGE, 2 * PAGE, 2 * PAGE)], Wait::One).remove(0);
        done.to.bytes()[2 * PAGE..].iter().copied().eq((PAGE as u64..).take(2 * PAGE).map(byte_at))
    }));
}

#[test]
fn a_file_that_was_cut_short_is_named_with_the_place_on_its_device() {
    let test = TestFile::new(16 * PAGE, 2, PAGE);
    let mut files = FileSet::new();
    files.open(&test.paths[0]).unwrap();
    let striped = files.open_striped(&test.paths, PAGE as u64).unwrap();
    let extents = [extent(0, PAGE), extent(5 * PAGE, 2 * PAGE)];
    let scattered = files.open_extents(&[source(&test.paths[1], &extents)], PAGE as u64).unwrap();
    fs::File::options().write(true).open(&test.paths[1]).unwrap().set_len(0).unwrap();
    let (mut engine, _) = open_engine(EngineChoice::Posix, &Arc::new(files), 1).unwrap();
    // Page 7 of the first is page 3 of its second stripe, page 2 of the other page 6 of its device.
    for (file, page, place) in [(striped, 7, 3), (scattered, 2, 6)] {
        let read = Read { file, ..test.read(page * PAGE, PAGE, 0) };
        let done = run(&mut *engine, vec![read], Wait::One).remove(0);
        let begin = format!(
            "cannot read `{}`: expected `4096` bytes at offset `{}`, got `0` after `5` attempts",
            test.paths[1].display(),
            place * PAGE
        );
        let error = done.result.unwrap_err().to_string();
        assert!(error.starts_with(&begin), "{error}");
    }
}
