//! Damaged tiles: an error or other arcs, never a panic, and always found by a checksum.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod strips;

use proptest::prelude::*;
use strips::{options, plain, strips, write};
use tiergraph_format::block;
use tiergraph_format::salt::Salt;
use tiergraph_format::tiles::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

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
        let intact = blocks.first().cloned();
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
            // The second of two equal flips mends the block.
            let damaged = intact.as_ref() != Some(block) && at >= 64;
            prop_assert!(block::check(block, "tiles.blocks", 0, Salt::NONE).is_err() || !damaged);
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
