//! Layout `tiles`: every arc and weight comes back from blocks, by their tables and by the index.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use tiergraph_format::block::{self, Layout};
use tiergraph_format::manifest::Weights;
use tiergraph_format::sink::VecSink;
use tiergraph_format::tiles::*;

/// Row, column and the bits of the weight.
type Arc = (u64, u64, u64);

#[derive(Debug, Clone)]
struct Strip {
    base: u64,
    rows: u32,
    arcs: Vec<Arc>,
}

/// Random arcs inside a rectangle: anything from one arc to a full tile or a hub.
#[derive(Debug, Clone)]
struct Patch {
    arcs: usize,
    row_bits: u32,
    column_bits: u32,
    column_base: u64,
    skewed: bool,
    seed: u64,
}

fn mix(mut z: u64) -> u64 {
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

fn patches() -> impl Strategy<Value = Vec<Patch>> {
    let arcs = prop_oneof![4 => 1..300usize, 2 => 300..6000usize, 1 => 20_000..40_000usize];
    let column_base = prop_oneof![
        Just(0),
        0..1u64 << 20,
        (1u64 << 32) - 3000..(1 << 32) + 3000,
        1u64 << 33..1 << 41
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

fn options() -> impl Strategy<Value = TileOptions> {
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
fn strips(options: TileOptions) -> impl Strategy<Value = (TileOptions, Vec<Strip>)> {
    let rows = prop_oneof![1..=64u32, 1..=65_536u32, Just(65_536)];
    let strip = (prop_oneof![Just(0), 0..1000u64, 1u64 << 27..1 << 31], rows, patches());
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
fn strip_of(options: &TileOptions, base: u64, rows: u32, mut arcs: Vec<Arc>) -> Strip {
    arcs.sort_unstable();
    if options.min_gap == 1 {
        arcs.dedup_by_key(|a| (a.0, a.1));
    }
    if options.weights == Weights::None {
        arcs.iter_mut().for_each(|a| a.2 = 0);
    }
    Strip { base, rows, arcs }
}

fn write(options: TileOptions, strips: &[Strip]) -> (Vec<Vec<u8>>, Vec<TilesIndex>) {
    let mut encoder = StripEncoder::new(options);
    let mut writer = TilesWriter::new(VecSink::default(), options);
    for strip in strips {
        // In no order: from the middle.
        let mut arcs = strip.arcs.clone();
        arcs.rotate_left(strip.arcs.len() / 2);
        let mut keys: Vec<u64> =
            arcs.iter().map(|&(row, column, _)| arc_key((row - strip.base) as u32, column)).collect();
        let weights: Vec<f64> = arcs.iter().map(|a| f64::from_bits(a.2)).collect();
        let weights = (options.weights != Weights::None).then_some(&*weights);
        let encoded = encoder.encode(strip.base, strip.rows, &mut keys, weights);
        assert_eq!(encoded.arcs, strip.arcs.len() as u64);
        writer.push(&encoded).unwrap();
    }
    let (sink, index) = writer.finish().unwrap();
    (sink.blocks, index)
}

/// Decodes a segment; its arcs in no particular order.
fn decode(segment: &Segment<'_>, options: &TileOptions) -> Vec<Arc> {
    let mut arcs = Vec::new();
    for_each_step(segment, options, |step| {
        assert!(!step.rows.is_empty() && step.rows.len() == step.columns.len());
        for (i, (&row, &column)) in step.rows.iter().zip(step.columns).enumerate() {
            assert!(row < segment.rows);
            let weight = step.weights.get(i).map_or(0, |w| w.to_bits());
            arcs.push((segment.row_base + u64::from(row), segment.column_base + u64::from(column), weight));
        }
    })
    .unwrap();
    arcs
}

/// Reads everything by the blocks' tables, compares the index with them and the arcs with `strips`.
fn check(options: TileOptions, strips: &[Strip]) {
    let (blocks, index) = write(options, strips);
    let mut entries = index.iter();
    let mut decoded: BTreeMap<u64, Vec<Arc>> = BTreeMap::new();
    for (number, bytes) in blocks.iter().enumerate() {
        assert_eq!(bytes.len(), options.block_bytes);
        let header = block::check(bytes, "tiles.blocks", number as u64).unwrap();
        assert_eq!(header.layout, Layout::Tiles);
        let block = TilesBlock::parse(bytes, &options).unwrap();
        let segments: Vec<_> = block.segments().collect::<Result<_, _>>().unwrap();
        assert_eq!(segments.len(), header.items as usize);
        assert_eq!(segments[0].row_base, header.first_vertex);
        let mut arcs = 0;
        for segment in &segments {
            let entry = entries.next().unwrap();
            let of_segment = decode(segment, &options);
            assert_eq!((entry.block, entry.arcs), (number as u32, of_segment.len() as u32));
            check_entry(entry, segment, bytes, &options);
            arcs += of_segment.len();
            decoded.entry(segment.row_base).or_default().extend(of_segment);
        }
        assert_eq!(arcs, header.arcs as usize);
        let used = 64 + header.payload_bytes as usize;
        assert!(bytes[used..].iter().all(|&b| b == 0));
    }
    assert_eq!(entries.next(), None);
    for strip in strips {
        let mut arcs = decoded.remove(&strip.base).unwrap_or_default();
        arcs.sort_unstable();
        assert!(arcs == strip.arcs, "strip at {}", strip.base);
    }
    assert!(decoded.is_empty());
}

fn check_entry(entry: &TilesIndex, segment: &Segment<'_>, block: &[u8], options: &TileOptions) {
    assert_eq!(TilesIndex::from_bytes(&entry.to_bytes()), Some(*entry));
    assert_eq!(entry.len as usize, segment.len);
    assert_eq!(segment.bytes.len(), segment.len + SLACK);
    assert!(entry.is_intact(segment));
    // Alone, from a page boundary before it, with nothing behind its slack.
    let page = entry.offset as usize / 4096 * 4096;
    let end = (entry.offset + entry.len) as usize + SLACK;
    let alone = entry.segment(&block[page..end], page, options.columns_log2).unwrap();
    assert_eq!(
        (alone.row_base, alone.rows, alone.column_base, alone.bytes, alone.len),
        (segment.row_base, segment.rows, segment.column_base, segment.bytes, segment.len)
    );
    assert!(entry.segment(&block[page..end - 1], page, options.columns_log2).is_err());
    assert!(entry.segment(block, entry.offset as usize + 1, options.columns_log2).is_err());
}

fn plain(columns_log2: u32, block_bytes: usize) -> TileOptions {
    TileOptions { columns_log2, min_gap: 1, weights: Weights::None, block_bytes }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn arcs_round_trip((options, strips) in options().prop_flat_map(strips)) {
        check(options, &strips);
    }

    #[test]
    fn garbage_never_panics(
        options in options(),
        mut bytes in prop::collection::vec(any::<u8>(), SLACK..2000),
        small: bool,
    ) {
        if small {
            // Headers that look sound get further.
            bytes.iter_mut().for_each(|b| *b %= 5);
        }
        let len = bytes.len() - SLACK;
        let segment = Segment { row_base: 0, rows: 65_536, column_base: 0, bytes: &bytes, len };
        let columns = 1 << options.columns_log2;
        for_each_step(&segment, &options, |step| {
            assert!(step.rows.iter().all(|&r| r < 65_536));
            assert!(step.columns.iter().all(|&c| c < columns));
        });
    }

    #[test]
    fn garbage_tables_never_panic(
        words in prop::collection::vec(prop_oneof![any::<u32>(), 0..200u32], 0..60),
        entry in any::<[u8; 32]>(),
        at: usize,
    ) {
        let options = plain(16, 4096);
        let mut bytes = vec![0; 64];
        bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        if let Ok(block) = TilesBlock::parse(&bytes, &options) {
            for segment in block.segments().flatten() {
                prop_assert!(segment.rows as usize <= STRIP_ROWS);
                prop_assert_eq!(segment.bytes.len(), segment.len + SLACK);
            }
        }
        let entry = TilesIndex::from_bytes(&entry).unwrap();
        if let Ok(segment) = entry.segment(&bytes, at % 300, 16) {
            prop_assert!(segment.rows as usize <= STRIP_ROWS);
        }
    }

    #[test]
    fn a_damaged_block_never_panics(
        (options, strips) in options().prop_flat_map(strips),
        flips in prop::collection::vec((any::<usize>(), 0..8u32), 1..6),
    ) {
        let (mut blocks, _) = write(options, &strips);
        for (at, bit) in flips {
            let Some(block) = blocks.first_mut() else { break };
            // The headers and the tables are hit as often as all else.
            let tables = u32::from_le_bytes(block[64..68].try_into().unwrap()) as usize;
            let at = match at % 3 {
                0 => 64 + at / 3 % 16,
                1 if tables + 64 < block.len() => tables + at / 3 % 64,
                _ => at % block.len(),
            };
            block[at] ^= 1 << bit;
            prop_assert!(block::check(block, "tiles.blocks", 0).is_err() || at < 64);
            if let Ok(block) = TilesBlock::parse(block, &options) {
                for segment in block.segments().flatten() {
                    let _ = for_each_step(&segment, &options, |_| ());
                }
            }
        }
    }

    #[test]
    fn a_flip_in_a_segment_is_found_by_its_index_entry(
        (options, strips) in options().prop_flat_map(strips),
        pick: usize,
        bit: usize,
    ) {
        let (mut blocks, index) = write(options, &strips);
        if !index.is_empty() {
            let entry = index[pick % index.len()];
            let block = &mut blocks[entry.block as usize];
            let bit = bit % (entry.len as usize * 8);
            block[entry.offset as usize + bit / 8] ^= 1 << (bit % 8);
            let segment = entry.segment(block, 0, options.columns_log2).unwrap();
            prop_assert!(!entry.is_intact(&segment));
        }
    }
}
