//! A flipped bit anywhere, a cut file and a stripe of another build are all found.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod sample;

use std::fs;
use std::path::Path;

use tiergraph_core::{Cancel, ErrorKind, Silent};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::flat;
use tiergraph_format::verify::{Report, verify};

fn check(path: &Path) -> Report {
    verify(path, &Silent, &Cancel::default()).unwrap()
}

#[test]
fn a_sound_graph_has_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let graph = sample::build(&dir.path().join("g.tg"), &[], 1);
    let report = check(graph.path());
    assert_eq!(report.damage, []);
    assert_eq!(report.files, 5);
    let entries = graph.manifest().files.values();
    assert_eq!(report.bytes, entries.map(|file| file.bytes).sum::<u64>());
}

/// Positions in every part of every block, page and header: a stride coprime to their sizes.
#[test]
fn a_flipped_bit_anywhere_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let stripes = [dir.path().join("a"), dir.path().join("b")];
    stripes.iter().for_each(|stripe| fs::create_dir(stripe).unwrap());
    let graph = sample::build(&dir.path().join("g.tg"), &stripes, 1);
    let files = sample::files(&graph);
    assert_eq!(files.len(), 3 + 2 * 3, "manifest, two arrays; two files and an id a stripe");
    for file in files {
        let sound = fs::read(&file).unwrap();
        let step = if sound.len() < 4096 { 1 } else { 2039 };
        for at in (0..sound.len()).step_by(step).chain([sound.len() - 1]) {
            let mut damaged = sound.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&file, damaged).unwrap();
            let report = check(graph.path());
            assert!(!report.damage.is_empty(), "{} byte {at}", file.display());
        }
        fs::write(&file, sound).unwrap();
    }
    assert_eq!(check(graph.path()).damage, []);
}

#[test]
fn damage_says_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let graph = sample::build(&dir.path().join("g.tg"), &[], 1);
    for name in ["out.blocks", "out.rows"] {
        let path = graph.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes[8192 + 4096 + 7] ^= 4;
        fs::write(&path, bytes).unwrap();
    }
    let report = check(graph.path());
    let places: Vec<_> =
        report.damage.iter().map(|d| (d.file.as_str(), d.block, d.offset)).collect();
    assert_eq!(places, [("out.blocks", 1, 8192), ("out.rows", 1, 12288)]);
    assert!(
        report.damage[1]
            .what
            .starts_with("cannot use page 3 (offset 12288) of `out.rows`: expected CRC-32C ")
    );
}

#[test]
fn a_cut_file_is_found_at_open_and_by_verify() {
    let dir = tempfile::tempdir().unwrap();
    let graph = sample::build(&dir.path().join("g.tg"), &[], 1);
    for name in graph.manifest().files.keys() {
        let path = graph.path().join(name);
        let sound = fs::read(&path).unwrap();
        fs::write(&path, &sound[..sound.len() - 1]).unwrap();
        let e = GraphDir::open(graph.path()).unwrap_err();
        assert_eq!(
            e.to_string(),
            format!(
                "cannot open `{}`: expected {} bytes, got {} bytes\n\nhint: the file was cut or \
                 replaced: rebuild the graph",
                path.display(),
                sound.len(),
                sound.len() - 1
            )
        );
        assert!(!check(graph.path()).damage.is_empty(), "{name}");
        fs::remove_file(&path).unwrap();
        assert_eq!(GraphDir::open(graph.path()).unwrap_err().kind(), ErrorKind::Io);
        assert!(!check(graph.path()).damage.is_empty(), "{name} missing");
        fs::write(&path, &sound).unwrap();
    }
}

#[test]
fn sound_blocks_of_another_build_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let one = sample::build(&dir.path().join("one.tg"), &[], 1);
    let two = sample::build(&dir.path().join("two.tg"), &[], 99);
    for name in ["out.blocks", "out.rows"] {
        let other = fs::read(two.path().join(name)).unwrap();
        let path = one.path().join(name);
        let mut mixed = fs::read(&path).unwrap();
        mixed[..8192].copy_from_slice(&other[..8192]);
        fs::write(&path, mixed).unwrap();
        let report = check(one.path());
        assert!(report.damage.iter().any(|d| d.file == name), "{name}: {report:?}");
    }
}

#[test]
fn reading_an_array_checks_it() {
    let dir = tempfile::tempdir().unwrap();
    let graph = sample::build(&dir.path().join("g.tg"), &[], 1);
    let entry = graph.entry("out.degrees").unwrap();
    let path = graph.path().join("out.degrees");
    let degrees: Vec<u32> = flat::read(&path, entry).unwrap();
    assert_eq!(degrees, (0..600).map(|vertex| vertex % 40).collect::<Vec<u32>>());
    assert_eq!(flat::read_chunk::<u32>(&path, entry, 0).unwrap(), degrees);
    assert!(flat::read_chunk::<u32>(&path, entry, 1).is_err());
    let mut bytes = fs::read(&path).unwrap();
    bytes[9] ^= 1;
    fs::write(&path, bytes).unwrap();
    for e in [
        flat::read::<u32>(&path, entry).unwrap_err(),
        flat::read_chunk::<u32>(&path, entry, 0).unwrap_err(),
    ] {
        assert!(e.to_string().starts_with("cannot use chunk 0 (offset 0) of "), "{e}");
    }
}

#[test]
fn verify_stops_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let graph = sample::build(&dir.path().join("g.tg"), &[], 1);
    let cancel = Cancel::default();
    cancel.cancel();
    let e = verify(graph.path(), &Silent, &cancel).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Interrupted);
}

#[test]
fn files_of_another_build_are_found_block_by_block() {
    let dir = tempfile::tempdir().unwrap();
    let graph = sample::build(&dir.path().join("g.tg"), &[], 1);
    let other = sample::build(&dir.path().join("other.tg"), &[], 1);
    for name in ["out.blocks", "out.rows"] {
        let path = graph.path().join(name);
        let sound = fs::read(&path).unwrap();
        fs::copy(other.path().join(name), &path).unwrap();
        let damage = check(graph.path()).damage;
        assert!(damage.len() as u64 >= graph.entry(name).unwrap().blocks, "{name}");
        assert!(damage.iter().all(|damage| damage.file == name), "{name}");
        fs::write(&path, sound).unwrap();
    }
    assert_eq!(check(graph.path()).damage, []);
}
