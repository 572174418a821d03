//! Graphs whose edges have values that follow from their numbers.

use tiergraph_core::{Cancel, Result, Silent};
use tiergraph_format::directory::Existing;
use tiergraph_format::edges::ValueType;
use tiergraph_ingest::edges::{Column, EdgeAddition, NewColumn};
use tiergraph_ingest::features::{MemoryRows, NewFeatures};
use tiergraph_ingest::{EdgeBatch, Endpoints};

use super::common::{Layout, Sample, mix};

/// Columns of the edges' features.
pub const DIM: usize = 3;

/// The weight of an edge.
pub fn weight(edge: u64) -> f32 {
    match mix(edge) % 5 {
        0 => 0.0,
        other => other as f32 / 2.0,
    }
}

/// The time of an edge.
pub fn time(edge: u64) -> i64 {
    (mix(edge + (1 << 30)) % 1000) as i64 - 500
}

/// The columns that are added.
pub fn announced() -> Vec<NewColumn> {
    let column = |name: &str, kind| NewColumn { name: name.into(), kind };
    vec![column("w", ValueType::F32), column("time", ValueType::I64)]
}

/// Gives the graph its edges again, `piece` at a time, with values, and features of each.
pub fn add(
    sample: &Sample,
    edges: &[(u64, u64)],
    piece: usize,
    existing: Existing,
    memory: u64,
) -> Result<()> {
    let mut addition = EdgeAddition::begin(&sample.path, announced(), existing, Some(memory))?;
    for (number, edges) in edges.chunks(piece).enumerate() {
        let first = (number * piece) as u64;
        let ends = Endpoints::U64 {
            src: edges.iter().map(|e| e.0).collect(),
            dst: edges.iter().map(|e| e.1).collect(),
        };
        let numbers = || first..first + edges.len() as u64;
        let weights: Vec<f32> = numbers().map(weight).collect();
        let times: Vec<i64> = numbers().map(time).collect();
        let columns = [Column::F32(&weights), Column::I64(&times)];
        addition.push(&EdgeBatch { ends, weights: None }, &columns)?;
    }
    let values = (0..edges.len() * DIM).map(|i| i as f32).collect();
    let features = NewFeatures::new("attr", MemoryRows::new(values, DIM, 100));
    addition.finish(vec![features], &Silent, &Cancel::default()).map(|_| ())
}

/// A graph whose edges have weights, times and features.
pub fn with_values(layout: &Layout) -> Sample {
    let sample = layout.build();
    add(&sample, &layout.edges, 7000, Existing::Refuse, 64 << 20).unwrap();
    sample
}
