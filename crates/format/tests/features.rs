//! Features in the manifest, and files that are added to a graph that is there.
#![allow(clippy::unwrap_used)]

mod sample;

use std::collections::BTreeMap;
use std::fs;

use tiergraph_format::directory::{Existing, GraphDir};
use tiergraph_format::features::{
    Addition, Destination, FeatureFiles, FeatureType, FeatureWriter, FeaturesEntry, NewFiles,
    RowLayout,
};
use tiergraph_format::flat::FlatWriter;
use tiergraph_format::manifest::Manifest;
use tiergraph_format::sink::{FileSink, VecSink};

const VERTICES: u64 = 600;

/// Writes a row of its own number for each vertex.
fn write(to: &mut dyn Destination, name: &str, layout: RowLayout) -> NewFiles {
    let files = FeatureFiles::of(name);
    let sink: FileSink = to.sink(&files.rows, sample::BLOCK_BYTES).unwrap();
    let crcs = FlatWriter::create(&to.flat(&files.crc).unwrap()).unwrap();
    let mut writer = FeatureWriter::new(layout, sample::BLOCK_BYTES, sink, crcs);
    let mut row = vec![0; layout.row_bytes()];
    for vertex in 0..VERTICES {
        layout.encode(&vec![vertex as f32; layout.dim()], &mut row).unwrap();
        writer.push(&row).unwrap();
    }
    let rows = writer.rows();
    let (sink, crcs) = writer.finish().unwrap();
    NewFiles {
        files: [(files.rows, sink.finish().unwrap()), (files.crc, crcs)].into(),
        features: [(name.to_owned(), FeaturesEntry { layout, rows })].into(),
        edge_features: BTreeMap::new(),
        sources: BTreeMap::new(),
    }
}

#[test]
fn a_writer_fills_pages_as_its_layout_says() {
    let dir = tempfile::tempdir().unwrap();
    for (dtype, dim, block_bytes) in [
        (FeatureType::F32, 100, 4096),
        (FeatureType::F32, 1433, 8192),
        (FeatureType::F16, 5000, 4096),
        (FeatureType::Int8, 3, 1 << 20),
    ] {
        let layout = RowLayout::new(dtype, dim).unwrap();
        let crc_file = dir.path().join("crc");
        let crcs = FlatWriter::create(&crc_file).unwrap();
        let mut writer = FeatureWriter::new(layout, block_bytes, VecSink::default(), crcs);
        let row = |r: u64| vec![r as u8 + 1; layout.row_bytes()];
        (0..50).for_each(|r| writer.push(&row(r)).unwrap());
        let (sink, crcs) = writer.finish().unwrap();
        let (last, whole) = sink.blocks.split_last().unwrap();
        assert!(whole.iter().all(|block| block.len() == block_bytes as usize));
        assert!(last.len() <= block_bytes as usize);
        let mut bytes = sink.blocks.concat();
        assert_eq!(bytes.len() as u64, layout.file_bytes(50));
        assert_eq!(crcs.bytes, bytes.len() as u64 / 4096 * 4);
        let stored = fs::read(&crc_file).unwrap();
        for (page, crc) in bytes.chunks(4096).zip(stored.as_chunks::<4>().0) {
            assert_eq!(crc32c::crc32c(page), u32::from_le_bytes(*crc));
        }
        for r in 0..50 {
            let at = layout.offset(r) as usize;
            let place = &mut bytes[at..at + layout.row_bytes()];
            assert_eq!(place, row(r));
            place.fill(0);
        }
        assert!(bytes.iter().all(|&b| b == 0), "nothing but rows: {dtype} {dim}");
    }
}

#[test]
fn files_are_added_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let stripes = [dir.path().join("a"), dir.path().join("b")];
    stripes.iter().for_each(|stripe| fs::create_dir(stripe).unwrap());
    let path = dir.path().join("g.tg");
    let before = sample::build(&path, &stripes, 1);
    let layout = RowLayout::new(FeatureType::F32, 33).unwrap();

    let mut addition = Addition::begin(&path, Existing::Refuse).unwrap();
    let busy = Addition::begin(&path, Existing::Refuse).unwrap_err().to_string();
    assert!(busy.ends_with("got one that another process adds to"), "{busy}");
    write(&mut addition, "x", layout);
    drop(addition);
    let left = |folder: &std::path::Path| fs::read_dir(folder).unwrap().count();
    assert_eq!(left(&path.join("features")), 0);
    assert_eq!(left(&before.manifest().stripes[1].join("features")), 0);
    assert_eq!(GraphDir::open(&path).unwrap().manifest(), before.manifest());

    let mut addition = Addition::begin(&path, Existing::Refuse).unwrap();
    let new = write(&mut addition, "x", layout);
    let after = addition.commit(new).unwrap();
    assert_eq!(after.manifest().features["x"].rows, VERTICES);
    assert_eq!(after.paths("features/x.rows").unwrap().len(), 2);
    assert_eq!(GraphDir::open(&path).unwrap().manifest(), after.manifest());
    assert_eq!(after.manifest().build_id, before.manifest().build_id);

    let mut addition = Addition::begin(&path, Existing::Refuse).unwrap();
    assert!(addition.sink("features/x.rows", sample::BLOCK_BYTES).is_err());
}

#[test]
fn an_addition_that_stopped_half_way_is_finished_by_the_next_open() {
    let dir = tempfile::tempdir().unwrap();
    let stripes = [dir.path().join("a"), dir.path().join("b")];
    stripes.iter().for_each(|stripe| fs::create_dir(stripe).unwrap());
    let path = dir.path().join("g.tg");
    sample::build(&path, &stripes, 1);
    let mut addition = Addition::begin(&path, Existing::Refuse).unwrap();
    let narrow = write(&mut addition, "x", RowLayout::new(FeatureType::F32, 3).unwrap());
    addition.commit(narrow).unwrap();

    let mut addition = Addition::begin(&path, Existing::Replace).unwrap();
    let wide = write(&mut addition, "x", RowLayout::new(FeatureType::F32, 33).unwrap());
    // The second file cannot be renamed: a directory is in the way.
    let target = GraphDir::open(&path).unwrap().paths("features/x.rows").unwrap();
    fs::remove_file(&target[1]).unwrap();
    fs::create_dir_all(target[1].join("full")).unwrap();
    let e = addition.commit(wide).unwrap_err().to_string();
    assert!(e.starts_with("cannot rename into place"), "{e}");
    let e = GraphDir::open(&path).unwrap_err().to_string();
    assert!(e.starts_with("cannot finish an interrupted addition to"), "{e}");

    fs::remove_dir_all(&target[1]).unwrap();
    let graph = GraphDir::open(&path).unwrap();
    assert_eq!(graph.manifest().features["x"].layout.dim(), 33);
    assert!(!path.join("adding.json").exists());
    let left = fs::read_dir(path.join("features")).unwrap().count();
    assert_eq!(left, 1, "the checksums");
}

#[test]
fn what_a_killed_addition_left_is_removed_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.tg");
    sample::build(&path, &[], 1);
    let addition = Addition::begin(&path, Existing::Refuse).unwrap();
    drop(addition);
    fs::create_dir_all(path.join("features")).unwrap();
    let left = [".temporary-7", "features/.x.rows.adding-7"].map(|name| path.join(name));
    let alike = [".temporary-x", "features/.adding-7", "features/x.adding-7"];
    let alike = alike.map(|name| path.join(name));
    left.iter().chain(&alike).for_each(|file| fs::write(file, "").unwrap());
    Addition::begin(&path, Existing::Refuse).unwrap();
    assert!(left.iter().all(|file| !file.exists()));
    assert!(alike.iter().all(|file| file.exists()), "they only look alike");
}

#[test]
fn a_manifest_whose_features_do_not_fit_their_files_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.tg");
    sample::build(&path, &[], 1);
    let mut addition = Addition::begin(&path, Existing::Refuse).unwrap();
    let layout = RowLayout::new(FeatureType::F16, 10).unwrap();
    let new = write(&mut addition, "x", layout);
    let good = addition.commit(new).unwrap().manifest().clone();
    good.write(&path).unwrap();
    let refused = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        manifest.write(&path).unwrap_err().to_string()
    };
    let x = |m: &Manifest| m.features["x"];
    for change in [
        &(|m: &mut Manifest| drop(m.files.remove("features/x.rows"))) as &dyn Fn(&mut Manifest),
        &|m| drop(m.files.remove("features/x.crc")),
        &|m| m.features.extend([("x".into(), FeaturesEntry { rows: VERTICES + 300, ..x(m) })]),
        &|m| m.features.extend([("x".into(), FeaturesEntry { rows: u64::MAX, ..x(m) })]),
        &|m| m.features.extend([("y".into(), x(m))]),
        &|m| m.vertices += 1,
        &|m| {
            let wide = RowLayout::new(FeatureType::F32, 500).unwrap();
            m.features.insert("x".into(), FeaturesEntry { layout: wide, ..x(m) });
        },
    ] {
        let text = refused(change);
        assert!(text.contains("features `"), "{text}");
    }
    for name in ["features/../x.rows", "features/", "labels/a/b", "other/x"] {
        let entry = good.files["features/x.crc"].clone();
        let text = refused(&|m| drop(m.files.insert(name.into(), entry.clone())));
        assert!(text.ends_with(&format!("a file named `{name}`")), "{text}");
    }
}
