//! Layout `tiles`: every arc and weight comes back from blocks, by their tables and by the index.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod strips;

use std::collections::BTreeMap;

use proptest::prelude::*;
use strips::{Arc, Strip, mix, options, plain, small, strip_of, strips, write};
use tiergraph_format::block::{self, Layout};
use tiergraph_format::manifest::Weights;
use tiergraph_format::salt::Salt;
use tiergraph_format::tiles::*;

/// Decodes a segment; its arcs in no particular order.
fn decode(segment: &Segment<'_>, options: &TileOptions) -> Vec<Arc> {
    let mut arcs = Vec::new();
    for_each_step(segment, options, |step| {
        assert!(!step.rows.is_empty() && step.rows.len() == step.columns.len());
        for (i, (&row, &column)) in step.rows.iter().zip(step.columns).enumerate() {
            assert!(row < segment.rows);
            let weight = step.weights.get(i).map_or(0, |w| w.to_bits());
            arcs.push((
                segment.row_base + u64::from(row),
                segment.column_base + u64::from(column),
                weight,
            ));
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
        let header = block::check(bytes, "tiles.blocks", number as u64, Salt::NONE).unwrap();
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

/// Plain and weighted options of every tile width.
fn all_options() -> impl Iterator<Item = TileOptions> {
    (10..=16).flat_map(|columns_log2| {
        [Weights::None, Weights::F32, Weights::F64].into_iter().flat_map(move |weights| {
            [4096, 1 << 20].map(|block_bytes| TileOptions {
                columns_log2,
                min_gap: 1,
                weights,
                block_bytes,
            })
        })
    })
}

#[test]
fn small_graphs_and_hubs() {
    for options in all_options() {
        let doubles = TileOptions { min_gap: 0, ..options };
        check(options, &[]);
        check(options, &[small(&options, 1, [])]);
        check(options, &[small(&options, 1, [(0, 0)])]);
        let loops = small(&options, 70, (0..70).map(|i| (i, i)));
        check(options, &[loops]);
        let clique = small(&options, 64, (0..64 * 64).map(|i| (i / 64, i % 64)));
        check(options, &[clique]);
        // Longer than a slice: halved by column, equal arcs by number; the rows beside them are whole.
        let hub = small(&options, 65_536, (0..70_000).map(|i| (65_535, i)));
        check(options, &[hub]);
        let beside = (0..9000).map(|i| (if i % 3 == 0 { i / 300 } else { 31 }, i));
        check(options, &[small(&options, 32, beside)]);
        let double = small(&doubles, 2, (0..20_000).map(|i| (i % 2, 3)));
        check(doubles, &[double]);
    }
}

/// Fields of 15 bits are stored in 16, the other widths as they are.
#[test]
fn gaps_of_every_width_round_trip() {
    let options = plain(16, 1 << 16);
    for bits in 0..=16 {
        // The second column's field has `bits` bits.
        let second = (1u64 << bits).min(65_535 - 40);
        for rows in [1, 31, 32, 33, 65] {
            for arcs in [2, 17, 40] {
                let columns = (1..arcs).map(|i| second + i - 1).chain([0]);
                let row = |r: u64| columns.clone().map(move |c| (r * second % 65_521, c));
                check(options, &[small(&options, 65_536, (0..rows).flat_map(row))]);
            }
        }
    }
}

#[test]
fn blocks_are_shared_and_tiles_span_them() {
    let options = plain(13, 4096);
    let shared: Vec<Strip> = (0..200)
        .map(|i| strip_of(&options, i * 32, 32, vec![(i * 32, 7, 0), (i * 32 + 31, 1 << 20, 0)]))
        .collect();
    let (blocks, index) = write(options, &shared);
    assert!(blocks.len() < 10 && index.len() == 400);
    check(options, &shared);
    let spanning = small(&options, 4096, (0..40_000).map(|i| (mix(i) % 4096, mix(i + 1) % 8192)));
    let (blocks, index) = write(options, std::slice::from_ref(&spanning));
    assert!(blocks.len() > 9 && index.len() == blocks.len());
    check(options, &[spanning]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn arcs_round_trip((options, strips) in options().prop_flat_map(strips)) {
        check(options, &strips);
    }

}
