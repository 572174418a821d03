//! Features in the manifest, and files that are added to a graph that is there.
#![allow(clippy::unwrap_used)]

mod sample;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tiergraph_core::{Cancel, Silent};
use tiergraph_format::directory::{Existing, GraphDir};
use tiergraph_format::features::{
    Addition, Destination, FeatureFiles, FeatureType, FeatureWriter, FeaturesEntry, NewFiles,
    RowCrcWriter, RowLayout, WrittenFeatures,
};
use tiergraph_format::flat::FlatWriter;
use tiergraph_format::manifest::Manifest;
use tiergraph_format::sink::VecSink;
use tiergraph_format::verify::verify;

const VERTICES: u64 = 600;
const BLOCK: u64 = sample::BLOCK_BYTES as u64;

/// Writes a row of its own number for each vertex.
fn write(to: &mut dyn Destination, name: &str, layout: RowLayout) -> NewFiles {
    let files = FeatureFiles::of(name);
    let mut writer = FeatureWriter::create(to, &files, layout, sample::BLOCK_BYTES).unwrap();
    let mut row = vec![0; layout.row_bytes()];
    for vertex in 0..VERTICES {
        layout.encode(&vec![vertex as f32; layout.dim()], &mut row).unwrap();
        writer.push(&row).unwrap();
    }
    let rows = writer.rows();
    NewFiles {
        files: writer.finish_files(&files).unwrap(),
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
        let (crc_file, row_crc_file) = (dir.path().join("crc"), dir.path().join("row_crc"));
        let crcs = FlatWriter::create(&crc_file).unwrap();
        let row_crcs = RowCrcWriter::new(FlatWriter::create(&row_crc_file).unwrap());
        let mut writer =
            FeatureWriter::new(layout, block_bytes, VecSink::default(), crcs, row_crcs);
        let row = |r: u64| vec![r as u8 + 1; layout.row_bytes()];
        (0..50).for_each(|r| writer.push(&row(r)).unwrap());
        let WrittenFeatures { sink, crc, row_crc } = writer.finish().unwrap();
        let (last, whole) = sink.blocks.split_last().unwrap();
        assert!(whole.iter().all(|block| block.len() == block_bytes as usize));
        assert!(last.len() <= block_bytes as usize);
        let mut bytes = sink.blocks.concat();
        assert_eq!(bytes.len() as u64, layout.file_bytes(50));
        assert_eq!((crc.bytes, row_crc.bytes), (bytes.len() as u64 / 4096 * 4, 50 * 4));
        let stored = fs::read(&crc_file).unwrap();
        for (page, crc) in bytes.chunks(4096).zip(stored.as_chunks::<4>().0) {
            assert_eq!(crc32c::crc32c(page), u32::from_le_bytes(*crc));
        }
        let of_rows = fs::read(&row_crc_file).unwrap();
        for (r, crc) in (0..50).zip(of_rows.as_chunks::<4>().0) {
            assert_eq!(crc32c::crc32c(&row(r)), u32::from_le_bytes(*crc));
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
    assert_eq!(left, 2, "the checksums of pages and rows");
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

/// Puts the checksums `crcs` of rows in place of those that the graph has, as if they were right.
fn replace_row_crcs(path: &Path, crcs: &[u32]) {
    let mut addition = Addition::begin(path, Existing::Replace).unwrap();
    let name = FeatureFiles::of("x").row_crc;
    let mut file = FlatWriter::create(&addition.flat(&name).unwrap()).unwrap();
    file.extend(crcs).unwrap();
    let mut new = NewFiles::default();
    new.files.insert(name, file.finish().unwrap());
    addition.commit(new).unwrap();
}

/// The places of all damage, and what it is.
fn damage(path: &Path) -> Vec<(String, u64, String)> {
    let report = verify(path, &Silent, &Cancel::default()).unwrap();
    report.damage.into_iter().map(|d| (d.file, d.offset, d.what)).collect()
}

#[test]
fn rows_that_differ_from_their_checksums_are_found() {
    let rows_file = "features/x.rows";
    // On one page, on two, and on pages of several blocks.
    for (dim, dtype) in
        [(33, FeatureType::F32), (1500, FeatureType::F16), (5000, FeatureType::Int8)]
    {
        let dir = tempfile::tempdir().unwrap();
        let stripes = [dir.path().join("a"), dir.path().join("b")];
        stripes.iter().for_each(|stripe| fs::create_dir(stripe).unwrap());
        let path = dir.path().join("g.tg");
        sample::build(&path, &stripes, 1);
        let layout = RowLayout::new(dtype, dim).unwrap();
        let mut addition = Addition::begin(&path, Existing::Refuse).unwrap();
        let new = write(&mut addition, "x", layout);
        addition.commit(new).unwrap();
        assert_eq!(damage(&path), []);
        let stored = fs::read(path.join("features/x.row_crc")).unwrap();
        let good: Vec<u32> =
            stored.as_chunks::<4>().0.iter().map(|crc| u32::from_le_bytes(*crc)).collect();

        // Two rows' checksums are exchanged: pages and files are sound, rows are not what they should
        // be.
        let mut exchanged = good.clone();
        exchanged.swap(70, 71);
        replace_row_crcs(&path, &exchanged);
        let found = damage(&path);
        let (file, offset, what) = &found[0];
        assert_eq!((file.as_str(), *offset), (rows_file, layout.offset(70)));
        let start =
            format!("cannot use row 70 (offset {offset}) of `{rows_file}`: expected CRC-32C ");
        assert!(what.starts_with(&start), "{what}");
        let (last, got) = (&found[found.len() - 1].2, format!("got {:08x}", good[71]));
        match found.len() {
            1 => assert!(what.contains(", and others for 1 more rows"), "{what}"),
            2 => assert!(last.contains(&got), "{last}"),
            more => panic!("{more} damages of two rows"),
        }

        // All checksums are wrong: one damage a block in which rows end.
        replace_row_crcs(&path, &good.iter().map(|crc| !crc).collect::<Vec<_>>());
        let blocks: BTreeSet<u64> = (0..VERTICES)
            .map(|row| (layout.offset(row) + layout.row_bytes() as u64 - 1) / BLOCK)
            .collect();
        assert_eq!(damage(&path).len(), blocks.len());

        // A damaged page is told once, and its rows are not.
        replace_row_crcs(&path, &good);
        assert_eq!(damage(&path), []);
        let first = GraphDir::open(&path).unwrap().paths(rows_file).unwrap().remove(0);
        let mut bytes = fs::read(&first).unwrap();
        bytes[4096 + 40] ^= 8;
        fs::write(&first, bytes).unwrap();
        let found = damage(&path);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].0.as_str(), found[0].1), (rows_file, 4096));

        // Without the checksums of pages, those of rows find it.
        fs::write(path.join("features/x.crc"), []).unwrap();
        let found = damage(&path);
        let of_rows =
            found.iter().filter(|(_, _, what)| what.starts_with("cannot use row")).count();
        assert_eq!(of_rows, 1, "{found:?}");
    }
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
    let mut without = good.clone();
    without.files.remove("features/x.row_crc").unwrap();
    without.write(&path).unwrap();
    let refused = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        manifest.write(&path).unwrap_err().to_string()
    };
    let x = |m: &Manifest| m.features["x"];
    for change in [
        &(|m: &mut Manifest| drop(m.files.remove("features/x.rows"))) as &dyn Fn(&mut Manifest),
        &|m| drop(m.files.remove("features/x.crc")),
        &|m| {
            let crc = m.files["features/x.crc"].clone();
            drop(m.files.insert("features/x.row_crc".into(), crc));
        },
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
