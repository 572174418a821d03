//! Features are read back as they were written, whatever their type, width, stripes and order.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use tiergraph_core::{Cancel, ErrorKind, Silent};
use tiergraph_format::directory::{Existing, GraphDir};
use tiergraph_format::features::FeatureType;
use tiergraph_format::verify::verify;
use tiergraph_graph::{Graph, OpenOptions};
use tiergraph_ingest::build::{BuildOptions, Ids, OrderChoice, build};
use tiergraph_ingest::features::{Attachment, Attachments, MemoryRows, NewFeatures, add, checksum};
use tiergraph_ingest::generate::hash::mix;
use tiergraph_ingest::source::memory::{ArraySource, MemorySpec};
use tiergraph_ingest::{EdgeBatch, Endpoints};

const MEMORY: u64 = 64 << 20;

/// A graph with features, as they should be read.
struct Sample {
    _directory: TempDir,
    path: PathBuf,
    values: Vec<f32>,
    dim: usize,
}

/// How a sample is built.
#[derive(Debug, Clone)]
struct Case {
    vertices: u32,
    dim: usize,
    dtype: FeatureType,
    stripes: usize,
    block_bytes: u32,
    order: OrderChoice,
    /// Rows in an order of their own.
    permuted: bool,
    /// Added to a graph that was there, in this many bytes.
    added: Option<u64>,
}

const PLAIN: Case = Case {
    vertices: 300,
    dim: 7,
    dtype: FeatureType::F32,
    stripes: 0,
    block_bytes: 4096,
    order: OrderChoice::Degree,
    permuted: false,
    added: None,
};

fn features(case: &Case, values: &[f32]) -> Attachments {
    let rows = MemoryRows::new(values.to_vec(), case.dim, 17);
    let mut new = NewFeatures { dtype: case.dtype, ..NewFeatures::new("x", rows) };
    if case.permuted {
        let mut rows: Vec<u32> = (0..case.vertices).collect();
        rows.sort_unstable_by_key(|&row| mix(u64::from(row)));
        new.rows = Some(rows);
    }
    Attachments::new(vec![Attachment::Features(new)]).unwrap()
}

fn sample(case: &Case) -> Sample {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("g.tg");
    let stripes: Vec<PathBuf> =
        (0..case.stripes).map(|i| directory.path().join(format!("stripe{i}"))).collect();
    stripes.iter().for_each(|stripe| fs::create_dir(stripe).unwrap());
    let n = u64::from(case.vertices);
    // Every vertex has an edge, and ids have gaps.
    let (src, dst) = (0..3 * n).map(|i| (i % n * 10, mix(i) % n % (1 + i % n) * 10)).unzip();
    let batch = EdgeBatch { ends: Endpoints::U64 { src, dst }, weights: None };
    let mut source = ArraySource::new(MemorySpec::default(), vec![batch]).unwrap();
    let word = |i: u64| (mix(i) >> 40) as f32 / (1 << 23) as f32 - 1.0;
    let values: Vec<f32> = (0..n * case.dim as u64).map(word).collect();
    let attachments = features(case, &values);
    let options = BuildOptions {
        ids: Ids::Map,
        order: case.order,
        stripes,
        block_bytes: case.block_bytes,
        memory: Some(MEMORY),
        attachments: if case.added.is_some() {
            Attachments::default()
        } else {
            attachments.clone()
        },
        ..BuildOptions::default()
    };
    build(&mut source, &path, &options, &Silent, &Cancel::default()).unwrap();
    if case.added.is_some() {
        let none = Cancel::default();
        add(&path, &attachments, Existing::Refuse, case.added, &Silent, &none).unwrap();
    }
    Sample { _directory: directory, path, values, dim: case.dim }
}

fn open(path: &Path) -> Graph {
    let options = OpenOptions { memory: Some(MEMORY), threads: Some(2), ..OpenOptions::default() };
    Graph::open(path, &options).unwrap()
}

/// Reads rows in an order that hops around and repeats, and compares them.
fn check(sample: &Sample, dtype: FeatureType) {
    let graph = open(&sample.path);
    let n = graph.vertices() as u64;
    let positions: Vec<u64> = (0..2 * n).map(|i| mix(i) % n).collect();
    let ids: Vec<u64> = positions.iter().map(|position| position * 10).collect();
    let read = graph.features().read("x", &graph.ids().find(&ids).unwrap()).unwrap();
    assert_eq!(read.len(), ids.len() * sample.dim);
    for (row, position) in read.chunks(sample.dim).zip(positions) {
        let wanted = &sample.values[position as usize * sample.dim..][..sample.dim];
        let most = wanted.iter().fold(0f32, |most, value| most.max(value.abs()));
        for (&got, &want) in row.iter().zip(wanted) {
            let bound = match dtype {
                FeatureType::F32 => 0.0,
                FeatureType::F16 => (want.abs() / 2048.0).max(2f32.powi(-25)),
                FeatureType::Int8 => most / 254.0 * 1.0001,
            };
            assert!((got - want).abs() <= bound, "{position}: {got} for {want}");
        }
    }
}

/// The bytes of the file of rows, out of its stripes.
fn file_of_rows(path: &Path) -> Vec<u8> {
    let dir = GraphDir::open(path).unwrap();
    let block_bytes = dir.manifest().block_bytes as usize;
    let stripes: Vec<Vec<u8>> =
        dir.paths("features/x.rows").unwrap().iter().map(|path| fs::read(path).unwrap()).collect();
    let mut blocks: Vec<_> = stripes.iter().map(|stripe| stripe.chunks(block_bytes)).collect();
    let count = blocks.len();
    (0..).map_while(|number: usize| blocks[number % count].next()).flatten().copied().collect()
}

/// Compares the checksums of rows with what the rows in the file have.
fn check_row_crcs(path: &Path) {
    let (graph, bytes) = (open(path), file_of_rows(path));
    let features = graph.features().get("x").unwrap();
    let crcs = features.row_crcs(&graph).unwrap().unwrap();
    assert_eq!(crcs.as_slice().len() as u64, features.rows());
    for vertex in 0..graph.vertices() as u32 {
        let row = &bytes[features.offset(vertex) as usize..][..features.row_bytes()];
        assert_eq!(crcs.as_slice()[features.row(vertex) as usize], crc32c::crc32c(row));
    }
}

/// Makes a graph one of a version whose rows have no checksums; what these were.
fn without_row_crcs(path: &Path) -> Vec<u8> {
    let file = path.join("features/x.row_crc");
    let crcs = fs::read(&file).unwrap();
    let mut manifest = GraphDir::open(path).unwrap().manifest().clone();
    manifest.files.remove("features/x.row_crc").unwrap();
    manifest.write(path).unwrap();
    fs::remove_file(&file).unwrap();
    crcs
}

fn cases() -> impl Strategy<Value = Case> {
    let dtype = prop::sample::select(vec![FeatureType::F32, FeatureType::F16, FeatureType::Int8]);
    let order = prop::sample::select(vec![OrderChoice::None, OrderChoice::Degree]);
    let dim = prop_oneof![1usize..40, 1usize..3000];
    let block_bytes = prop::sample::select(vec![4096u32, 12 << 10, 1 << 20]);
    let added = prop::option::of(prop::sample::select(vec![1u64 << 21, 1 << 26]));
    (1u32..120, dim, dtype, 0usize..4, block_bytes, order, any::<bool>(), added).prop_map(
        |(vertices, dim, dtype, stripes, block_bytes, order, permuted, added)| Case {
            vertices,
            dim,
            dtype,
            stripes,
            block_bytes,
            order,
            permuted,
            added,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read(case in cases()) {
        let sample = sample(&case);
        let report = verify(&sample.path, &Silent, &Cancel::default()).unwrap();
        prop_assert_eq!(report.damage, []);
        check(&sample, case.dtype);
        check_row_crcs(&sample.path);
        let crcs = without_row_crcs(&sample.path);
        check(&sample, case.dtype);
        checksum(&sample.path, "x", None, &Silent, &Cancel::default()).unwrap();
        prop_assert_eq!(fs::read(sample.path.join("features/x.row_crc")).unwrap(), crcs);
        check_row_crcs(&sample.path);
    }
}

#[test]
fn a_graph_without_checksums_of_rows_works_and_gets_them() {
    let sample = sample(&Case { stripes: 2, ..PLAIN });
    let file = sample.path.join("features/x.row_crc");
    let crcs = without_row_crcs(&sample.path);
    let graph = open(&sample.path);
    let features = graph.features().get("x").unwrap();
    assert!(!features.has_row_crcs(&graph) && features.row_crcs(&graph).unwrap().is_none());
    check(&sample, PLAIN.dtype);
    let none = Cancel::default();
    assert_eq!(verify(&sample.path, &Silent, &none).unwrap().damage, []);

    let error = checksum(&sample.path, "z", None, &Silent, &none).unwrap_err();
    let text = "cannot checksum the features `z`: expected one of the graph's: x";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Input, text));
    let error = checksum(&sample.path, "x", Some(100), &Silent, &none).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Budget);
    let cancelled = Cancel::default();
    cancelled.cancel();
    checksum(&sample.path, "x", None, &Silent, &cancelled).unwrap_err();
    assert!(!file.exists());

    let manifest = checksum(&sample.path, "x", Some(1 << 20), &Silent, &none).unwrap();
    assert_eq!(manifest.files["features/x.row_crc"].bytes, crcs.len() as u64);
    assert_eq!(fs::read(&file).unwrap(), crcs);
    assert_eq!(verify(&sample.path, &Silent, &none).unwrap().damage, []);
    // In place of those that are there.
    checksum(&sample.path, "x", None, &Silent, &none).unwrap();
    check_row_crcs(&sample.path);
}

#[test]
fn checksums_of_rows_are_not_made_of_damaged_pages() {
    let sample = sample(&PLAIN);
    let crcs = without_row_crcs(&sample.path);
    let file = sample.path.join("features/x.rows");
    let mut bytes = fs::read(&file).unwrap();
    bytes[4096] ^= 1;
    fs::write(&file, bytes).unwrap();
    let error = checksum(&sample.path, "x", None, &Silent, &Cancel::default()).unwrap_err();
    assert!(error.to_string().contains("page 1 (offset 4096) of `features/x.rows`"), "{error}");
    assert!(!crcs.is_empty() && !sample.path.join("features/x.row_crc").exists());
}

#[test]
fn checksums_of_rows_count_as_long_as_they_are_held() {
    let sample = sample(&PLAIN);
    let graph = open(&sample.path);
    let features = graph.features().get("x").unwrap();
    let before = graph.memory().budget().used();
    let crcs = features.row_crcs(&graph).unwrap();
    assert_eq!(graph.memory().budget().used() - before, 4 * 300);
    drop(crcs);
    assert_eq!(graph.memory().budget().used(), before);
}

#[test]
fn a_matrix_larger_than_memory_is_put_in_order() {
    let case = Case { vertices: 6000, dim: 300, added: Some(2 << 20), ..PLAIN };
    check(&sample(&case), case.dtype);
}

#[test]
fn a_vertex_is_where_the_file_has_its_bytes() {
    for dim in [7, 700, 1433, 3703] {
        let sample = sample(&Case { vertices: 20, dim, order: OrderChoice::None, ..PLAIN });
        let graph = open(&sample.path);
        let features = graph.features().get("x").unwrap();
        let bytes = fs::read(sample.path.join("features/x.rows")).unwrap();
        assert_eq!(bytes.len() as u64, features.page_count() * 4096);
        let mut row = vec![0.0; dim];
        for vertex in 0..20 {
            let span = features.page_span(vertex);
            let offset = features.offset(vertex) as usize;
            assert!(span.contains(&(offset as u64 / 4096)));
            assert_eq!(span.end, (offset + features.row_bytes()).div_ceil(4096) as u64);
            features.decode(&bytes[offset..offset + features.row_bytes()], &mut row);
            assert_eq!(row, sample.values[vertex as usize * dim..][..dim]);
            for page in span {
                features.check_page(page, &bytes[page as usize * 4096..][..4096]).unwrap();
            }
        }
    }
}

#[test]
fn the_resident_part_is_counted_when_it_is_first_used() {
    let sample = sample(&PLAIN);
    let graph = open(&sample.path);
    let before = graph.memory().budget().used();
    let pages = graph.features().get("x").unwrap().page_count();
    assert_eq!(graph.memory().budget().used() - before, 4 * pages);
    graph.features().get("x").unwrap();
    assert_eq!(graph.memory().budget().used() - before, 4 * pages);
}

#[test]
fn a_damaged_page_is_named_by_file_page_and_offset() {
    let sample = sample(&Case { dim: 1024, ..PLAIN });
    let file = sample.path.join("features/x.rows");
    let mut bytes = fs::read(&file).unwrap();
    bytes[5 * 4096 + 17] ^= 4;
    fs::write(&file, bytes).unwrap();
    let graph = open(&sample.path);
    graph.features().read("x", &[4, 6]).unwrap();
    let error = graph.features().read("x", &[4, 5]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
    let text = error.to_string();
    assert!(text.starts_with("cannot use page 5 (offset 20480) of `features/x.rows`: "), "{text}");
    let report = verify(&sample.path, &Silent, &Cancel::default()).unwrap();
    let places: Vec<_> = report.damage.iter().map(|d| (d.file.as_str(), d.offset)).collect();
    assert_eq!(places, [("features/x.rows", 5 * 4096)]);
}

#[test]
fn damaged_checksums_are_found_before_they_are_used() {
    let sample = sample(&PLAIN);
    let file = sample.path.join("features/x.crc");
    let mut bytes = fs::read(&file).unwrap();
    bytes[0] ^= 1;
    fs::write(&file, bytes).unwrap();
    let error = open(&sample.path).features().read("x", &[0]).unwrap_err();
    assert!(error.to_string().contains("features/x.crc"), "{error}");
    let report = verify(&sample.path, &Silent, &Cancel::default()).unwrap();
    assert_eq!(report.damage.len(), 1, "{:?}", report.damage);
}

#[test]
fn damaged_checksums_of_rows_are_found_before_they_are_used() {
    let sample = sample(&PLAIN);
    let file = sample.path.join("features/x.row_crc");
    let mut bytes = fs::read(&file).unwrap();
    bytes[0] ^= 1;
    fs::write(&file, bytes).unwrap();
    let graph = open(&sample.path);
    let features = graph.features().get("x").unwrap();
    let error = features.row_crcs(&graph).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
    assert!(error.to_string().contains("features/x.row_crc"), "{error}");
    let report = verify(&sample.path, &Silent, &Cancel::default()).unwrap();
    let places: Vec<_> = report.damage.iter().map(|d| (d.file.as_str(), d.offset)).collect();
    assert_eq!(places, [("features/x.row_crc", 0)]);
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let sample = sample(&PLAIN);
    let graph = open(&sample.path);
    let error = graph.features().get("z").unwrap_err().to_string();
    assert_eq!(error, "cannot use the features `z`: expected one of x");
    let error = graph.features().read("x", &[300]).unwrap_err().to_string();
    assert!(error.contains("expected one of 300 vertices"), "{error}");
}

#[test]
fn features_are_added_once_and_replaced_when_asked() {
    let case = Case { permuted: true, ..PLAIN };
    let mut sample = sample(&case);
    let none = Cancel::default();
    let doubled: Vec<f32> = sample.values.iter().map(|value| value * 2.0).collect();
    let again = |existing, values: &[f32]| {
        // Without an order of its own: the old one's file must be gone.
        let new = features(&PLAIN, values);
        add(&sample.path, &new, existing, Some(MEMORY), &Silent, &none)
    };
    let error = again(Existing::Refuse, &doubled).unwrap_err().to_string();
    assert!(error.contains("cannot add `features/x.rows`"), "{error}");
    // Too few rows, found at the end: nothing has changed, nothing is left.
    again(Existing::Replace, &doubled[7..]).unwrap_err();
    check(&sample, case.dtype);
    let manifest = again(Existing::Replace, &doubled).unwrap();
    assert!(!manifest.files.contains_key("features/x.ids"));
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&sample.path.join("features")), ["x.crc", "x.row_crc", "x.rows"]);
    assert!(names(&sample.path).iter().all(|name| !name.starts_with('.')));
    sample.values = doubled;
    check(&sample, case.dtype);
    check_row_crcs(&sample.path);
}
