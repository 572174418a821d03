//! Random strips of arcs, and tiles of them in memory.
#![allow(dead_code, reason = "each test file uses a part of it")]

use proptest::prelude::*;
use tiergraph_format::manifest::Weights;
use tiergraph_format::sink::VecSink;
use tiergraph_format::tiles::*;

/// Row, column and the bits of the weight.
pub type Arc = (u64, u64, u64);

#[derive(Debug, Clone)]
pub struct Strip {
    pub base: u64,
    pub rows: u32,
    pub arcs: Vec<Arc>,
}

/// Random arcs inside a rectangle: anything from one arc to a full tile or a hub.
#[derive(Debug, Clone)]
pub struct Patch {
    arcs: usize,
    row_bits: u32,
    column_bits: u32,
    column_base: u64,
    skewed: bool,
    seed: u64,
}

pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Patch {
    fn arcs(&self, base: u64, rows: u32) -> impl Iterator<Item = Arc> + '_ {
        (0..self.arcs as u64).map(move |i| {
            let r = mix(self.seed.wrapping_add(i));
            // Of skewed rows, few have most arcs.
            let row = if self.skewed { r & (r >> 17) & (r >> 34) } else { r } & 0xFFFF;
            let row = row & ((1 << self.row_bits) - 1);
            let column = mix(r) & ((1 << self.column_bits) - 1);
            let weight = (r % 2000) as f64 / 8.0 - 100.0;
            (base + row % u64::from(rows), self.column_base + column, weight.to_bits())
        })
    }
}

pub fn patches() -> impl Strategy<Value = Vec<Patch>> {
    let arcs = prop_oneof![4 => 1..300usize, 2 => 300..6000usize, 1 => 20_000..40_000usize];
    let column_base = prop_oneof![
        Just(0),
        0..1u64 << 20,
        (1u64 << 32) - 3000..(1 << 32) + 3000,
        1u64 << 33..1 << 36
    ];
    let patch = (arcs, 0..=16u32, 0..=18u32, column_base, any::<bool>(), any::<u64>()).prop_map(
        |(arcs, row_bits, column_bits, column_base, skewed, seed)| Patch {
            arcs,
            row_bits,
            column_bits,
            column_base,
            skewed,
            seed,
        },
    );
    prop::collection::vec(patch, 0..3)
}

pub fn options() -> impl Strategy<Value = TileOptions> {
    let weights = prop_oneof![Just(Weights::None), Just(Weights::F32), Just(Weights::F64)];
    let block_bytes = prop_oneof![Just(4096), Just(8192), Just(1 << 16), Just(1 << 20)];
    (10..=16u32, 0..=1u32, weights, block_bytes).prop_map(
        |(columns_log2, min_gap, weights, block_bytes)| TileOptions {
            columns_log2,
            min_gap,
            weights,
            block_bytes,
        },
    )
}

/// Strips in row order, some of them far beyond row 2^32.
pub fn strips(options: TileOptions) -> impl Strategy<Value = (TileOptions, Vec<Strip>)> {
    let rows = prop_oneof![1..=64u32, 1..=65_536u32, Just(65_536)];
    let strip = (prop_oneof![Just(0), 0..1000u64, 1u64 << 27..1 << 29], rows, patches());
    prop::collection::vec(strip, 0..5).prop_map(move |specs| {
        let mut next = 0;
        let strips = specs.into_iter().map(|(skip, rows, patches)| {
            let base = next + skip * LANES as u64;
            next = (base + u64::from(rows)).next_multiple_of(LANES as u64);
            let arcs = patches.iter().flat_map(|p| p.arcs(base, rows)).collect();
            strip_of(&options, base, rows, arcs)
        });
        (options, strips.collect())
    })
}

/// Removes what the options rule out: doubles where gaps are at least 1, weights where there are none.
pub fn strip_of(options: &TileOptions, base: u64, rows: u32, mut arcs: Vec<Arc>) -> Strip {
    arcs.sort_unstable();
    if options.min_gap == 1 {
        arcs.dedup_by_key(|a| (a.0, a.1));
    }
    if options.weights == Weights::None {
        arcs.iter_mut().for_each(|a| a.2 = 0);
    }
    Strip { base, rows, arcs }
}

pub fn write(options: TileOptions, strips: &[Strip]) -> (Vec<Vec<u8>>, Vec<TilesIndex>) {
    let mut encoder = StripEncoder::new(options);
    let mut writer = TilesWriter::new(VecSink::default(), options);
    for strip in strips {
        // In no order: from the middle.
        let mut arcs = strip.arcs.clone();
        arcs.rotate_left(strip.arcs.len() / 2);
        let mut keys: Vec<u64> = arcs
            .iter()
            .map(|&(row, column, _)| arc_key((row - strip.base) as u32, column))
            .collect();
        let weights: Vec<f64> = arcs.iter().map(|a| f64::from_bits(a.2)).collect();
        let weights = (options.weights != Weights::None).then_some(&*weights);
        let encoded = encoder.encode(strip.base, strip.rows, &mut keys, weights);
        assert_eq!(encoded.arcs, strip.arcs.len() as u64);
        writer.push(&encoded).unwrap();
    }
    let (sink, index) = writer.finish().unwrap();
    (sink.blocks, index)
}

/// A strip at row 0 of `(row, column)`s with a weight each.
pub fn small(
    options: &TileOptions,
    rows: u32,
    arcs: impl IntoIterator<Item = (u64, u64)>,
) -> Strip {
    let weighted = arcs.into_iter().enumerate().map(|(i, (r, c))| (r, c, (i as f64).to_bits()));
    strip_of(options, 0, rows, weighted.collect())
}

pub fn plain(columns_log2: u32, block_bytes: usize) -> TileOptions {
    TileOptions { columns_log2, min_gap: 1, weights: Weights::None, block_bytes }
}
