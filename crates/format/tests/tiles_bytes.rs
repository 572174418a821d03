//! The bytes of tiles: what `docs/format.md` says, how many there are, and what is refused.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod strips;

use strips::{mix, plain, small, write};
use tiergraph_format::manifest::Weights;
use tiergraph_format::sink::VecSink;
use tiergraph_format::tiles::*;

#[test]
fn a_uniform_slice_byte_by_byte() {
    let options = TileOptions { weights: Weights::F32, ..plain(10, 4096) };
    let mut arcs =
        [(9, 7), (5, 3), (6, 2), (6, 1), (5, 10), (9, 1000)].map(|(r, c)| arc_key(r, c)).to_vec();
    let weights = [3.0, 1.0, 5.0, 2.0, 4.0, 6.0];
    let strip = StripEncoder::new(options).encode(64, 32, &mut arcs, Some(&weights));
    let structure = [
        &[2, 0, 3, 0][..],  // length, rows
        &[5, 0],            // first row
        &[0x32, 0x0A],      // widths: row gaps 2, step 0 3; step 1 10
        &[0b11_01_00],      // row gaps 0, 1, 3
        &[0b11_001_011, 1], // columns 3, 1, 7
        &[6, 0, 0, 0x3E],   // gaps less one: 6, 0, 992
    ];
    let weights = (1..=6u8).flat_map(|w| f32::from(w).to_le_bytes());
    let expected: Vec<u8> = structure.concat().into_iter().chain(weights).collect();
    assert_eq!(strip.bytes, expected);
    assert_eq!(strip.groups, [(0, 0, 6)]);
}

#[test]
fn a_jagged_slice_byte_by_byte() {
    let columns = |row: u32| if row == 8 { 0..18u64 } else { 4..20 };
    let mut arcs: Vec<u64> =
        [2, 8].into_iter().flat_map(|r| columns(r).map(move |c| arc_key(r, c))).collect();
    // The second tile: a group of its own.
    arcs.extend([arc_key(2, 1023), arc_key(31, 1024)]);
    let strip = StripEncoder::new(plain(10, 1 << 20)).encode(0, 32, &mut arcs, None);
    let expected = [
        &[0, 0, 2, 0][..],               // jagged, lanes
        &[18, 0, 2, 0],                  // longest, least row
        &[0x33, 0x01],                   // widths: row offsets 3, step 0 3; missing lengths 1
        &[0, 0, 0, 0, 0, 0, 0, 0xA0, 0], // widths of steps 1 to 17: step 16 has 10
        &[6, 0b10],                      // rows 2 + 6 and 2 + 0; lengths 18 - 0 and 18 - 1
        &[0b100_000],                    // columns 0 and 4
        &[0, 0xAC, 0x0F],                // step 16: gaps less one 0 and 1003
        &[1, 0, 1, 0, 31, 0, 0],         // one row, its column 0: no fields at all
    ];
    assert_eq!(strip.bytes, expected.concat());
    assert_eq!(strip.groups, [(0, 0, 35), (25, 1, 1)]);
}

#[test]
fn tables_byte_by_byte() {
    let options = plain(16, 4096);
    let mut encoder = StripEncoder::new(options);
    let mut writer = TilesWriter::new(VecSink::default(), options);
    for (base, column) in [(32, 1 << 16), (1 << 36, 0)] {
        let strip = encoder.encode(base, 9, &mut vec![arc_key(1, column), arc_key(1, 9)], None);
        writer.push(&strip).unwrap();
    }
    let (sink, index) = writer.finish().unwrap();
    let words = |at: usize, n: usize| -> Vec<u32> {
        let bytes = sink.blocks[0][at..at + 4 * n].as_chunks().0.iter();
        bytes.map(|w| u32::from_le_bytes(*w)).collect()
    };
    assert_eq!(words(64, 4), [104, 2, 3, 1]);
    // The first strip has a column in each of two tiles, the second two columns in one.
    assert_eq!(words(104, 8), [32, 0, 9, 2, 0, 1 << 4, 9, 1]);
    assert_eq!(words(136, 6), [0, 80, 1, 88, 0, 95]);
    assert!(words(160, 900).iter().all(|&w| w == 0));
    let crc = index[2].crc32c;
    let entry = [0, 95, 104 - 95, 2, 0, 9, crc, 1 << 31];
    let bytes: Vec<u8> = entry.iter().flat_map(|w: &u32| w.to_le_bytes()).collect();
    assert_eq!(index[2].to_bytes(), *bytes);
}

#[test]
fn what_cannot_be_written_or_read_is_refused() {
    let options = plain(16, 4096);
    let encode = |base| StripEncoder::new(options).encode(base, 40, &mut vec![arc_key(0, 0)], None);
    let mut writer = TilesWriter::new(VecSink::default(), options);
    assert_eq!(
        writer.push(&encode(33)).unwrap_err().to_string(),
        "cannot write the strip at row `33`: expected rows from 0 to 137438953472, at a multiple \
         of 32, got rows 33 to 73"
    );
    assert!(writer.push(&encode(MAX_VERTICES - 32)).is_err());
    writer.push(&encode(64)).unwrap();
    assert!(writer.push(&encode(96)).is_err(), "a strip inside the one before");
    let (sink, index) = writer.finish().unwrap();
    let other = TileOptions { min_gap: 0, ..options };
    assert_eq!(
        TilesBlock::parse(&sink.blocks[0], &other).unwrap_err().to_string(),
        "cannot read a block of tiles: expected tables inside the block, got another minimum gap \
         than the manifest's"
    );
    assert!(TilesBlock::parse(&sink.blocks[0][..100], &options).is_err());
    assert_eq!(TilesIndex::from_bytes(&index[0].to_bytes()[1..]), None);
}

#[test]
#[should_panic(expected = "an arc that is there twice")]
fn doubles_where_the_minimum_gap_is_1_panic() {
    StripEncoder::new(plain(16, 4096)).encode(0, 1, &mut vec![7, 7], None);
}

/// Degree-ordered R-MAT with `2^scale` vertices and 16 edges each, without doubles.
fn rmat(scale: u32, stored_once: bool) -> Vec<(u64, u64)> {
    let mut edges: Vec<(u64, u64)> = (0..16u64 << scale)
        .map(|i| {
            (0..scale).fold((0, 0), |(u, v), level| {
                let r = mix(i * 64 + u64::from(level) + 0x9e37_79b9_7f4a_7c15) % 100;
                let quarter = u64::from(r >= 57) + u64::from(r >= 76) + u64::from(r >= 95);
                (2 * u + quarter / 2, 2 * v + quarter % 2)
            })
        })
        .collect();
    let mut degrees = vec![0u32; 1 << scale];
    edges.iter().flat_map(|e| [e.0, e.1]).for_each(|v| degrees[v as usize] += 1);
    let mut order: Vec<usize> = (0..1 << scale).collect();
    order.sort_by_key(|&v| std::cmp::Reverse(degrees[v]));
    let mut rank = vec![0; 1 << scale];
    (0..).zip(&order).for_each(|(new, &old)| rank[old] = new);
    for edge in &mut edges {
        let (u, v) = (rank[edge.0 as usize], rank[edge.1 as usize]);
        *edge = if stored_once { (u.max(v), u.min(v)) } else { (v, u) };
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Sizes are deterministic: these were measured, and 2 % more is a regression.
#[test]
fn tiles_stay_small() {
    for (columns_log2, stored_once, measured) in [(16, false, 1.1666), (13, true, 1.0809)] {
        let options = plain(columns_log2, 1 << 16);
        let edges = rmat(16, stored_once);
        let strip = small(&options, 65_536, edges.iter().copied());
        let (blocks, index) = write(options, &[strip]);
        let bytes = blocks.len() * options.block_bytes + index.len() * TilesIndex::BYTES;
        let per_edge = bytes as f64 / edges.len() as f64;
        assert!(per_edge <= measured * 1.02, "{per_edge} bytes an edge, expected {measured}");
        assert!(per_edge >= measured * 0.98, "{per_edge} bytes an edge: lower `measured`");
    }
}

#[test]
fn tiles_sorted_by_the_caller_give_the_same_bytes() {
    let options = plain(10, 1 << 20);
    let arcs: Vec<(u32, u32)> = (0..5000u32)
        .map(|i| i.wrapping_mul(0x9E37_79B1))
        .map(|h| (h >> 25, h >> 8 & 4095))
        .collect();
    let mut keys: Vec<u64> =
        arcs.iter().map(|&(row, column)| arc_key(row, column.into())).collect();
    let expected = StripEncoder::new(options).encode(64, 128, &mut keys, None);
    let mut strip = EncodedStrip { row_base: 64, rows: 128, ..EncodedStrip::default() };
    let mut encoder = StripEncoder::new(options);
    for tile in 0..4 {
        let of_tile = arcs.iter().filter(|arc| arc.1 >> 10 == tile);
        let mut keys: Vec<u32> =
            of_tile.map(|&(row, column)| options.tile_key(row, column & 1023)).collect();
        keys.sort_unstable();
        encoder.push_tile(&mut strip, tile, &keys, &[]);
    }
    assert_eq!((strip.arcs, &strip.bytes), (5000, &expected.bytes));
    assert_eq!((expected.arcs, &strip.groups), (5000, &expected.groups));
}
