//! What is written in any dialect is read back as it was.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::Write;

use common::{drain, file};
use proptest::prelude::*;
use tiergraph_ingest::source::memory::{ArraySource, MemorySpec, channel};
use tiergraph_ingest::source::{
    EdgeBatch, EdgeSource, Endpoints, Format, OpenOptions, Weights, open,
};

type Edge = (u64, u64);

fn ids() -> impl Strategy<Value = u64> {
    prop_oneof![0..100u64, any::<u32>().prop_map(u64::from), any::<u64>(), Just(u64::MAX)]
}

fn edge_lists() -> impl Strategy<Value = Vec<(u64, u64, f64)>> {
    prop::collection::vec((ids(), ids(), prop_oneof![0.0..1.0, 0.0..1e300]), 1..200)
}

/// How one file is written.
#[derive(Debug, Clone)]
struct Written {
    delimiter: &'static str,
    newline: &'static str,
    header: bool,
    comments: bool,
    last_newline: bool,
    zipped: bool,
}

fn written() -> impl Strategy<Value = Written> {
    let delimiter =
        prop::sample::select(vec![" ", "\t", ",", ", ", ";", " | ", "  \t", ":", "&", " , "]);
    let newline = prop::sample::select(vec!["\n", "\r\n", " \n", "\n\n"]);
    (delimiter, newline, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(delimiter, newline, header, comments, last_newline, zipped)| Written {
            delimiter,
            newline,
            header,
            comments,
            last_newline,
            zipped,
        },
    )
}

impl Written {
    fn bytes(&self, edges: &[(u64, u64, f64)]) -> Vec<u8> {
        let (d, newline) = (self.delimiter, self.newline);
        let mut text = String::new();
        if self.comments {
            text.push_str(&format!("# 1 2 3{newline}%{newline}"));
        }
        if self.header {
            text.push_str(&format!("from{d}to{d}label{d}cost{newline}"));
        }
        for (index, (src, dst, weight)) in edges.iter().enumerate() {
            text.push_str(&format!("{src}{d}{dst}{d}x{index}{d}{weight}{newline}"));
            if self.comments && index % 7 == 3 {
                text.push_str(&format!("  % in between{newline}"));
            }
        }
        if !self.last_newline {
            text.truncate(text.trim_end_matches(['\n', '\r']).len());
        }
        if !self.zipped {
            return text.into_bytes();
        }
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zip.write_all(text.as_bytes()).unwrap();
        zip.finish().unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn text_in_any_dialect(edges in edge_lists(), written in written(), threads in 1..4usize) {
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir, "edges", written.bytes(&edges));
        let weights =
            if written.header { Weights::Name("cost".into()) } else { Weights::Column(4) };
        let options = OpenOptions { weights, threads, ..OpenOptions::default() };
        let mut source = open(&path, &options).unwrap();
        let (ends, weights) = drain(source.as_mut()).unwrap();
        prop_assert_eq!(ends, edges.iter().map(|e| (e.0, e.1)).collect::<Vec<Edge>>());
        prop_assert_eq!(weights, edges.iter().map(|e| e.2).collect::<Vec<f64>>());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let dir = tempfile::tempdir().unwrap();
        for format in Format::ALL {
            file(&dir, "g.v", &bytes);
            file(&dir, "g.properties", b"graphclass=BVGraph\nnodes=50\narcs=9\n");
            let name = match format {
                Format::Graphalytics => "g.e",
                Format::BvGraph => "g.graph",
                _ => "g.any",
            };
            let path = file(&dir, name, &bytes);
            let options = OpenOptions { format: Some(format), ..OpenOptions::default() };
            if let Ok(mut source) = open(&path, &options) {
                // An error is as good as edges: the point is that nothing panics or hangs.
                let _ = drain(source.as_mut());
            }
        }
    }

    #[test]
    fn arrays_of_every_integer_type(
        edges in prop::collection::vec((0..128u8, 0..128u8), 0..50),
        kind in prop::sample::select(vec!["|u1", "|i1", "<u2", ">i2", "<i4", ">u4", "<u8", ">i8"]),
        fortran: bool,
        tall: bool,
    ) {
        // A 2 × 2 array is one of pairs.
        prop_assume!(tall || edges.len() != 2);
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir, "a.npy", array(&edges, kind, fortran, tall));
        let (ends, _) = drain(open(&path, &OpenOptions::default()).unwrap().as_mut()).unwrap();
        let wanted: Vec<Edge> = edges.iter().map(|e| (e.0.into(), e.1.into())).collect();
        prop_assert_eq!(ends, wanted);
    }
}

/// A `.npy` file of the edges.
fn array(edges: &[(u8, u8)], kind: &str, fortran: bool, tall: bool) -> Vec<u8> {
    let shape =
        if tall { format!("({}, 2)", edges.len()) } else { format!("(2, {})", edges.len()) };
    let order = if fortran { "True" } else { "False" };
    let header =
        format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}       \n");
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header.as_bytes());
    let values: Vec<u8> = if tall == fortran {
        edges.iter().map(|e| e.0).chain(edges.iter().map(|e| e.1)).collect()
    } else {
        edges.iter().flat_map(|e| [e.0, e.1]).collect()
    };
    let width: usize = kind[2..].parse().unwrap();
    for value in values {
        let mut word = vec![0; width];
        let place = if kind.starts_with('>') { width - 1 } else { 0 };
        word[place] = value;
        bytes.extend(word);
    }
    bytes
}

#[test]
fn pair_files_of_both_widths() {
    let dir = tempfile::tempdir().unwrap();
    // More than one chunk.
    let edges: Vec<Edge> = (0..1_500_000).map(|i| (i, i * 7 % 1_000_003)).collect();
    let flat = || edges.iter().flat_map(|e| [e.0, e.1]);
    let narrow: Vec<u8> = flat().flat_map(|id| (id as u32).to_le_bytes()).collect();
    let wide: Vec<u8> = flat().flat_map(u64::to_le_bytes).collect();
    for (name, bytes) in [("a.u32", narrow), ("a.u64", wide)] {
        let path = file(&dir, name, bytes);
        assert!(common::edges(&path, &OpenOptions::default()) == edges, "{name}");
    }
}

#[test]
fn text_widens_where_an_id_needs_it() {
    let dir = tempfile::tempdir().unwrap();
    let big = u64::from(u32::MAX) + 1;
    let mut text = "1 2\n".repeat(40_000);
    text.push_str(&format!("{big} 3\n"));
    text.push_str(&"4 5\n".repeat(40_000));
    let path = file(&dir, "a.txt", text);
    let edges = common::edges(&path, &OpenOptions::default());
    assert_eq!(edges.len(), 80_001);
    assert_eq!(edges[39_999..40_002], [(1, 2), (big, 3), (4, 5)]);
}

fn batch(edges: &[(u32, u32)]) -> EdgeBatch {
    let (src, dst) = edges.iter().copied().unzip();
    EdgeBatch { ends: Endpoints::U32 { src, dst }, weights: None }
}

#[test]
fn pushed_batches_arrive_in_order() {
    let spec = MemorySpec { name: "arrays".into(), ..MemorySpec::default() };
    let (mut sender, mut source) = channel(spec, 2);
    let pusher = std::thread::spawn(move || {
        for i in 0..100 {
            let mut next = sender.spare();
            assert!(next.is_empty());
            let (src, dst) = next.as_u32_mut();
            src.extend([i, i]);
            dst.extend([i + 1, i + 2]);
            sender.send(next).unwrap();
        }
        sender.finish().unwrap();
    });
    let (edges, _) = drain(&mut source).unwrap();
    pusher.join().unwrap();
    let wanted: Vec<Edge> = (0..100).flat_map(|i| [(i, i + 1), (i, i + 2)]).collect();
    assert_eq!(edges, wanted);
    assert_eq!(
        source.restart().unwrap_err().to_string(),
        "cannot read again `arrays`: expected a file or arrays, got a stream that can be read once"
    );
}

#[test]
fn a_caller_that_stops_is_no_end() {
    let spec = MemorySpec { name: "arrays".into(), ..MemorySpec::default() };
    let (mut sender, mut source) = channel(spec.clone(), 2);
    sender.send(batch(&[(1, 2)])).unwrap();
    drop(sender);
    assert_eq!(
        drain(&mut source).unwrap_err().to_string(),
        "cannot read all edges of `arrays`: the caller stopped before the end"
    );
    let (mut sender, source) = channel(spec, 2);
    drop(source);
    assert_eq!(
        sender.send(batch(&[(1, 2)])).unwrap_err().to_string(),
        "cannot push edges of `arrays`: the build that read them has ended"
    );
}

#[test]
fn batches_that_do_not_fit_together_are_refused() {
    let spec = MemorySpec { name: "arrays".into(), weighted: true, ..MemorySpec::default() };
    let message = |weights| {
        let batch = EdgeBatch { weights, ..batch(&[(1, 2), (3, 4)]) };
        match ArraySource::new(spec.clone(), vec![batch]) {
            Ok(_) => panic!("the batch cannot be used"),
            Err(e) => e.to_string(),
        }
    };
    let start = "cannot use the batch after edge 0 of `arrays`: expected ";
    assert_eq!(message(None), format!("{start}weights, got none"));
    assert_eq!(message(Some(vec![1.0])), format!("{start}2 weights, got 1"));
    assert_eq!(
        message(Some(vec![1.0, f64::NAN])),
        format!("{start}weights of 0 or more, got `NaN`")
    );
}
