//! Features, labels and splits: what sources give, what is refused and how.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tiergraph_core::{Cancel, ErrorKind, Result, Silent};
use tiergraph_format::directory::{Existing, GraphDir};
use tiergraph_format::features::{ArrayRole, FeatureType};
use tiergraph_ingest::build::{BuildOptions, build};
use tiergraph_ingest::features::{
    Attachment, Attachments, ClassModel, Classes, MemoryRows, NewArray, NewFeatures, NotFinite,
    NpyRows, RowSource, SEPARATION, add, header_of,
};
use tiergraph_ingest::source::memory::{ArraySource, MemorySpec};
use tiergraph_ingest::{EdgeBatch, Endpoints};

/// A path of `n` vertices at `directory/g.tg`, with these attachments.
fn graph(directory: &Path, n: u32, attachments: Attachments) -> Result<PathBuf> {
    let path = directory.join("g.tg");
    let ends = Endpoints::U32 { src: (0..n - 1).collect(), dst: (1..n).collect() };
    let batch = EdgeBatch { ends, weights: None };
    let mut source = ArraySource::new(MemorySpec::default(), vec![batch])?;
    let options = BuildOptions { memory: Some(16 << 20), attachments, ..BuildOptions::default() };
    build(&mut source, &path, &options, &Silent, &Cancel::default())?;
    Ok(path)
}

fn one(new: NewFeatures) -> Attachments {
    Attachments::new(vec![Attachment::Features(new)]).unwrap()
}

fn array(role: ArrayRole, descr: &str, shape: &[u64], data: &[u8]) -> Result<Attachments> {
    let bytes = [header_of(descr, shape), data.to_vec()].concat();
    let new = NewArray::new(role, "a", "a.npy".into(), std::io::Cursor::new(bytes))?;
    Attachments::new(vec![Attachment::Array(new)])
}

/// The error of a build of ten vertices, which leaves nothing.
fn refused(attachments: Attachments) -> String {
    let directory = TempDir::new().unwrap();
    let error = graph(directory.path(), 10, attachments).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    error.to_string()
}

#[test]
fn a_row_too_few_or_too_many_is_refused() {
    for rows in [9, 11] {
        let new = NewFeatures::new("x", MemoryRows::new(vec![0.0; 3 * rows], 3, 4));
        let text = refused(one(new));
        let expected = format!(
            "cannot store features `x` of `an array`: expected a row for each of 10 vertices, got \
             {rows} rows{}\n\nhint: rows belong to ids in ascending order; `--vertices` says |V| \
             where the last ids have no edge",
            if rows > 10 { " or more" } else { "" }
        );
        assert_eq!(text, expected);
    }
}

#[test]
fn numbers_that_cannot_be_stored_are_told_with_their_place() {
    let new = |dtype, value: f32| {
        let mut values = vec![1.0; 30];
        values[17] = value;
        NewFeatures { dtype, ..NewFeatures::new("x", MemoryRows::new(values, 3, 2)) }
    };
    let at = "in row 5, column 2";
    let text = refused(one(new(FeatureType::F32, f32::NAN)));
    assert!(text.contains(&format!("expected finite numbers, got NaN {at}")), "{text}");
    let text = refused(one(new(FeatureType::F16, 1e6)));
    assert!(text.contains(&format!("expected numbers that f16 holds, got 1000000 {at}")), "{text}");
    let kept = NewFeatures { not_finite: NotFinite::Keep, ..new(FeatureType::Int8, f32::INFINITY) };
    let text = refused(one(kept));
    assert!(text.contains(&format!("expected numbers that int8 holds, got inf {at}")), "{text}");
    let directory = TempDir::new().unwrap();
    let kept = NewFeatures { not_finite: NotFinite::Keep, ..new(FeatureType::F16, f32::NAN) };
    graph(directory.path(), 10, one(kept)).unwrap();
}

#[test]
fn labels_and_splits_are_checked() {
    let floats: Vec<u8> =
        [0.0f32; 9].iter().chain(&[f32::NAN]).flat_map(|v| v.to_le_bytes()).collect();
    let text = refused(array(ArrayRole::Labels, "<f4", &[10], &floats).unwrap());
    assert!(
        text.contains("store labels `a` of `a.npy`: expected finite numbers, got NaN at 9"),
        "{text}"
    );
    let text = refused(array(ArrayRole::Labels, "|u1", &[11], &[0; 11]).unwrap());
    assert!(text.contains("expected one for each of 10 vertices, got 11"), "{text}");
    let text = refused(array(ArrayRole::Split, "|b1", &[9], &[0; 9]).unwrap());
    assert!(text.contains("expected one for each of 10 vertices, got 9"), "{text}");
    for bad in [10i64, -1] {
        let data = [3i64, bad].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
        let text = refused(array(ArrayRole::Split, "<i8", &[2], &data).unwrap());
        assert!(text.contains(&format!("positions of 0 to 9, got {bad} at 1")), "{text}");
    }
    let cut = graph(
        TempDir::new().unwrap().path(),
        10,
        array(ArrayRole::Labels, "<i8", &[10], &[0; 79]).unwrap(),
    );
    assert!(cut.unwrap_err().to_string().starts_with("cannot read `a.npy`"));
    let text = refused(array(ArrayRole::Labels, "<i8", &[10], &[0; 81]).unwrap());
    assert!(text.contains("80 bytes after the header, got more"), "{text}");
    let floats = array(ArrayRole::Split, "<f4", &[10], &[0; 40]).unwrap_err().to_string();
    assert!(floats.contains("a mask of booleans, or positions, got floats"), "{floats}");
    assert!(array(ArrayRole::Labels, "|O", &[10], &[]).is_err());
}

#[test]
fn arrays_are_stored_as_they_came() {
    let directory = TempDir::new().unwrap();
    let labels: Vec<u8> = (0..10i64).flat_map(|v| v.to_le_bytes()).collect();
    let path =
        graph(directory.path(), 10, array(ArrayRole::Labels, "<i8", &[10], &labels).unwrap())
            .unwrap();
    let file = path.join("labels/a.npy");
    assert_eq!(fs::read(&file).unwrap(), [header_of("<i8", &[10]), labels].concat());
    let split = array(ArrayRole::Split, "<i4", &[1], &9i32.to_le_bytes()).unwrap();
    let none = Cancel::default();
    add(&path, &split, Existing::Refuse, None, &Silent, &none).unwrap();
    assert!(GraphDir::open(&path).unwrap().manifest().files.contains_key("splits/a.npy"));
}

#[test]
fn names_are_names_of_files_and_occur_once() {
    let features =
        |name| Attachment::Features(NewFeatures::new(name, MemoryRows::new(vec![], 1, 1)));
    for name in ["", ".x", "a/b", "a b", "ä"] {
        assert!(Attachments::new(vec![features(name)]).is_err(), "{name}");
    }
    assert!(Attachments::new(vec![features("x"), features("x2")]).is_ok());
    assert!(Attachments::new(vec![features("x"), features("x")]).is_err());
}

#[test]
fn npy_files_are_read_in_pieces_and_checked() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.npy");
    // More than one piece.
    let (rows, dim) = (300_000u64, 3u64);
    let data: Vec<u8> = (0..rows * dim).flat_map(|v| (v as f64).to_le_bytes()).collect();
    let bytes = [header_of("<f8", &[rows, dim]), data].concat();
    fs::write(&path, &bytes).unwrap();
    let mut source = NpyRows::open(&path).unwrap();
    let shape = source.shape().unwrap();
    assert_eq!((shape.rows, shape.dim), (Some(rows), 3));
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while source.next_rows(&mut batch).unwrap() {
        assert!(batch.len() < 1 << 18 && batch.len() % 3 == 0);
        all.extend_from_slice(&batch);
    }
    assert!(all.iter().zip(0u32..).all(|(got, want)| *got == want as f32));
    assert_eq!(all.len() as u64, rows * dim);

    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let cut = NpyRows::open(&path).err().unwrap().to_string();
    assert!(
        cut.contains("expected 300000 rows of 3 numbers after the header, got 7199999 bytes"),
        "{cut}"
    );
    fs::write(&path, header_of("<f4", &[2, 3, 4])).unwrap();
    assert!(NpyRows::open(&path).err().unwrap().to_string().contains("the shape (N, D)"));
    fs::write(&path, header_of("<f4", &[0, 3])).unwrap();
    assert!(!NpyRows::open(&path).unwrap().next_rows(&mut batch).unwrap());
}

/// Every value of a source.
fn drain(new: Attachments) -> PathBuf {
    let directory = TempDir::new().unwrap().keep();
    graph(&directory, 1000, new).unwrap()
}

#[test]
fn generated_features_are_the_same_for_any_number_of_threads() {
    let classes = Classes::Communities { communities: 10, classes: 4 };
    let files = ["features/x.rows", "labels/y.npy", "splits/train.npy", "splits/test.npy"];
    let written = [1, 2, 7].map(|threads| {
        let model = ClassModel::new(1000, 9, classes, 5).unwrap();
        let path = drain(model.attachments(FeatureType::F32, threads).unwrap());
        let bytes = files.map(|file| fs::read(path.join(file)).unwrap());
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        bytes
    });
    assert!(written[0] == written[1] && written[0] == written[2]);
    let other = ClassModel::new(1000, 9, classes, 6).unwrap();
    let path = drain(other.attachments(FeatureType::F32, 2).unwrap());
    assert_ne!(fs::read(path.join(files[0])).unwrap(), written[0][0]);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    // Labels are the communities', and every vertex is in one part.
    let labels = written[0][1].split_at(written[0][1].len() - 8000).1;
    let label = |v: usize| i64::from_le_bytes(labels[8 * v..][..8].try_into().unwrap());
    assert!((0..1000).all(|v| label(v) == (v % 10 % 4) as i64));
    let trained = written[0][2].iter().rev().take(1000).filter(|b| **b == 1).count();
    assert!((60..140).contains(&trained), "{trained}");
}

#[test]
fn features_are_their_class_mean_and_noise_of_variance_1() {
    // Values are read through a matrix in memory: 32-bit floats without an order.
    let (n, dim, classes) = (20_000u64, 16usize, 4u64);
    let of = Classes::Communities { communities: 4, classes };
    let model = ClassModel::new(n, dim, of, 3).unwrap();
    let directory = TempDir::new().unwrap();
    let attachments = model.clone().attachments(FeatureType::F32, 2).unwrap();
    let path = {
        let path = directory.path().join("g.tg");
        let ends = Endpoints::U32 { src: vec![0], dst: vec![n as u32 - 1] };
        let batch = EdgeBatch { ends, weights: None };
        let mut source = ArraySource::new(MemorySpec::default(), vec![batch]).unwrap();
        let order = tiergraph_ingest::build::OrderChoice::None;
        let options = BuildOptions { order, attachments, ..BuildOptions::default() };
        build(&mut source, &path, &options, &Silent, &Cancel::default()).unwrap();
        path
    };
    let bytes = fs::read(path.join("features/x.rows")).unwrap();
    let value = |v: u64, d: usize| {
        let at = (v as usize * dim + d) * 4;
        f64::from(f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()))
    };
    let mut means = vec![vec![0.0; dim]; classes as usize];
    let each = n as f64 / classes as f64;
    for v in 0..n {
        (0..dim).for_each(|d| means[model.class(v) as usize][d] += value(v, d) / each);
    }
    let variance = (0..n)
        .flat_map(|v| (0..dim).map(move |d| (v, d)))
        .map(|(v, d)| (value(v, d) - means[model.class(v) as usize][d]).powi(2))
        .sum::<f64>()
        / (n as f64 * dim as f64);
    // The standard deviation of this estimate is about 0.002.
    assert!((variance - 1.0).abs() < 0.02, "{variance}");
    let distance = |a: usize, b: usize| {
        means[a].iter().zip(&means[b]).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
    };
    for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        let relative = distance(a, b) / f64::from(SEPARATION);
        assert!((0.5..1.6).contains(&relative), "{a} and {b}: {relative}");
    }
}

#[test]
fn wrong_classes_are_refused() {
    let new = |classes| ClassModel::new(10, 4, classes, 1).map(|_| ());
    assert!(new(Classes::Random(0)).is_err());
    assert!(new(Classes::Communities { communities: 3, classes: 4 }).is_err());
    assert!(new(Classes::None).is_ok());
}
