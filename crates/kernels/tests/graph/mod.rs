//! Random strips of arcs, written as blocks of tiles in memory.
#![allow(dead_code, reason = "each test file uses a part of it")]

use proptest::prelude::*;
use tiergraph_format::manifest::Weights;
use tiergraph_format::sink::VecSink;
use tiergraph_format::tiles::*;

/// Row, column and weight.
pub type Arc = (u64, u64, f64);

#[derive(Debug, Clone)]
pub struct Graph {
    pub options: TileOptions,
    pub arcs: Vec<Arc>,
    pub blocks: Vec<Vec<u8>>,
}

impl Graph {
    /// Cuts `arcs` into strips of `rows` rows.
    pub fn new(options: TileOptions, rows: u32, mut arcs: Vec<Arc>) -> Self {
        arcs.sort_unstable_by_key(|a| (a.0, a.1));
        if options.min_gap == 1 {
            arcs.dedup_by_key(|a| (a.0, a.1));
        }
        let mut encoder = StripEncoder::new(options);
        let mut writer = TilesWriter::new(VecSink::default(), options);
        for strip in arcs.chunk_by(|a, b| a.0 / u64::from(rows) == b.0 / u64::from(rows)) {
            let base = strip[0].0 / u64::from(rows) * u64::from(rows);
            let mut keys: Vec<u64> =
                strip.iter().map(|a| arc_key((a.0 - base) as u32, a.1)).collect();
            let weights: Vec<f64> = strip.iter().map(|a| a.2).collect();
            let weights = (options.weights != Weights::None).then_some(&*weights);
            writer.push(&encoder.encode(base, rows, &mut keys, weights)).unwrap();
        }
        Self { options, arcs, blocks: writer.finish().unwrap().0.blocks }
    }

    pub fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        self.blocks.iter().flat_map(|block| {
            let block = TilesBlock::parse(block, &self.options).unwrap();
            block.segments().map(Result::unwrap).collect::<Vec<_>>()
        })
    }
}

pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub fn options() -> impl Strategy<Value = TileOptions> {
    let weights = prop_oneof![Just(Weights::None), Just(Weights::F32), Just(Weights::F64)];
    let block_bytes = prop_oneof![Just(4096), Just(1 << 16), Just(1 << 20)];
    (10..=16u32, 0..=1u32, weights, block_bytes).prop_map(
        |(columns_log2, min_gap, weights, block_bytes)| TileOptions {
            columns_log2,
            min_gap,
            weights,
            block_bytes,
        },
    )
}

/// Arcs below `1 << bits` in rectangles: anything from one arc to full tiles and hubs.
pub fn arcs(bits: u32) -> impl Strategy<Value = Vec<Arc>> {
    let number = prop_oneof![4 => 1..300usize, 2 => 300..6000usize, 1 => 20_000..40_000usize];
    let patch = (number, 0..=bits, 0..=bits, any::<bool>(), any::<u64>()).prop_map(
        move |(number, row_bits, column_bits, skewed, seed)| {
            (0..number as u64).map(move |i| {
                let r = mix(seed.wrapping_add(i));
                // Of skewed rows, few have most arcs.
                let row = if skewed { r & (r >> 17) & (r >> 34) } else { r };
                let row = (seed ^ row & ((1 << row_bits) - 1)) & ((1 << bits) - 1);
                let column = mix(r) & ((1 << column_bits) - 1);
                (row, column, (r % 2000) as f64 / 8.0)
            })
        },
    );
    prop::collection::vec(patch, 0..3).prop_map(|p| p.into_iter().flatten().collect())
}

/// A graph of rows below 2^18 and columns below 2^17, in strips of any size.
pub fn graphs() -> impl Strategy<Value = Graph> {
    let rows = prop_oneof![1..2048u32, Just(2048)].prop_map(|units| units * 32);
    (options(), rows, arcs(17)).prop_map(|(options, rows, arcs)| Graph::new(options, rows, arcs))
}

/// Graphs that few random ones look like.
pub fn small_graphs() -> Vec<Graph> {
    let square = |n: u64| (0..n * n).map(move |i| (i / n, i % n, 1.0)).collect::<Vec<_>>();
    let mut graphs = Vec::new();
    for columns_log2 in 10..=16 {
        for weights in [Weights::None, Weights::F32, Weights::F64] {
            let options = TileOptions { columns_log2, min_gap: 1, weights, block_bytes: 1 << 16 };
            let doubles = TileOptions { min_gap: 0, ..options };
            graphs.push(Graph::new(options, 32, vec![]));
            graphs.push(Graph::new(options, 32, vec![(0, 0, 1.0)]));
            graphs.push(Graph::new(options, 64, square(64)));
            graphs.push(Graph::new(options, 64, square(200)));
            graphs.push(Graph::new(options, 32, (0..100).map(|i| (i, i, 0.5)).collect()));
            let hub = (0..70_000).map(|i| (65_535, i, i as f64));
            graphs.push(Graph::new(options, 65_536, hub.collect()));
            graphs.push(Graph::new(doubles, 32, vec![(31, 9, 2.0); 10_000]));
        }
    }
    graphs
}
