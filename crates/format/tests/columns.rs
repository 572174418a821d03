//! Columns of edges fill pages, have a checksum for each, and are refused where they do not.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod sample;

use tiergraph_core::{Cancel, Silent};
use tiergraph_format::directory::{Existing, GraphDir};
use tiergraph_format::edges::{Side, ValueType, column_bytes, column_file, crc_file};
use tiergraph_format::features::{Addition, Destination, NewFiles};
use tiergraph_format::flat::FlatWriter;
use tiergraph_format::manifest::{FileKind, Manifest};
use tiergraph_format::pages::PageWriter;
use tiergraph_format::verify::verify;

/// A value for each arc, handed on in pieces that fit neither pages nor blocks.
fn write(to: &mut dyn Destination, name: &str, arcs: u64) -> NewFiles {
    let crcs = FlatWriter::create(&to.flat(&crc_file(name)).unwrap()).unwrap();
    let sink = to.sink(name, sample::BLOCK_BYTES).unwrap();
    let mut pages = PageWriter::new(sample::BLOCK_BYTES, sink, crcs);
    let bytes: Vec<u8> = (0..arcs).flat_map(|arc| (arc as i64 - 7).to_le_bytes()).collect();
    for (piece, at) in bytes.chunks(1000).zip((0..).step_by(1000)) {
        pages.write_at(at, piece).unwrap();
    }
    let (sink, crcs) = pages.finish(column_bytes(arcs, 8)).unwrap();
    let mut new = NewFiles::default();
    new.files.insert(name.into(), sink.finish().unwrap());
    new.files.insert(crc_file(name), crcs);
    new
}

#[test]
fn a_column_is_its_values_and_zeros() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.tg");
    let arcs = sample::build(&path, &[], 1).manifest().arcs;
    let name = column_file(Side::In, "time", ValueType::I64);
    let mut addition = Addition::begin(&path, Existing::Refuse).unwrap();
    let new = write(&mut addition, &name, arcs);
    let good = addition.commit(new).unwrap().manifest().clone();
    let bytes = std::fs::read(path.join(&name)).unwrap();
    assert_eq!(bytes.len() as u64, column_bytes(arcs, 8));
    assert!(bytes.len().is_multiple_of(4096));
    for (arc, value) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let expected = if (arc as u64) < arcs { arc as i64 - 7 } else { 0 };
        assert_eq!(i64::from_le_bytes(*value), expected);
    }
    assert_eq!(verify(&path, &Silent, &Cancel::default()).unwrap().damage, []);
    let refused = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        manifest.write(&path).unwrap_err().to_string()
    };
    for change in [
        &(|m: &mut Manifest| drop(m.files.remove(&crc_file(&name)))) as &dyn Fn(&mut Manifest),
        &|m| m.arcs += 4096,
        &|m| {
            let file = m.files.get_mut(&name).unwrap();
            (file.kind, file.blocks) = (FileKind::Flat, 0);
            file.bytes = 0;
        },
    ] {
        let text = refused(change);
        assert!(text.contains("store the values of edges again"), "{text}");
    }
    assert_eq!(GraphDir::open(&path).unwrap().manifest(), &good);
}
