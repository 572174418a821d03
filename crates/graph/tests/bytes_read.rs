//! Passes read each byte once, and nothing that is resident.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Layout, PACKED, Sample, cold};
use tiergraph_format::manifest::Codec;
use tiergraph_graph::{Direction, Graph, NearLists, NextPass, OpenOptions, PassStats, SegmentRun};

/// What one pass over everything read, and the arcs that it visited.
fn pass(graph: &Graph) -> (PassStats, u64) {
    pass_then(graph, NextPass::Unknown)
}

fn pass_then(graph: &Graph, next: NextPass) -> (PassStats, u64) {
    let before = graph.totals().get();
    let arcs = AtomicU64::new(0);
    let count = |n: u64| arcs.fetch_add(n, Ordering::Relaxed);
    match graph.tiles().is_stored() {
        true => graph
            .tiles()
            .pass(
                (&graph.tiles().select(|_| true), next),
                |_| (),
                |(), entry, _| {
                    count(u64::from(entry.arcs));
                    Ok(())
                },
                |()| Ok(()),
            )
            .unwrap(),
        false => graph
            .raw(Direction::In)
            .pass(
                next,
                |_| (),
                |(), row| {
                    count(row.neighbors.len() as u64);
                    Ok(())
                },
                |()| Ok(()),
            )
            .unwrap(),
    }
    (graph.totals().get().since(&before), arcs.into_inner())
}

fn file_bytes(graph: &Graph) -> u64 {
    graph.manifest().files[graph.pass_file().unwrap()].bytes
}

const LAYOUTS: [Layout; 5] = [
    PACKED,
    Layout { block_bytes: 4 << 10, stripes: 3, ..PACKED },
    Layout { block_bytes: 64 << 10, edges: 100_000, ..PACKED },
    Layout { block_bytes: 128 << 10, edges: 100_000, ..PACKED },
    Layout {
        codec: Codec::Raw,
        block_bytes: 128 << 10,
        edges: 100_000,
        directed: true,
        stripes: 0,
    },
];

#[test]
fn without_residency_every_pass_reads_the_file_once() {
    for layout in LAYOUTS {
        let sample = Sample::new(layout);
        for threads in 1..=3 {
            let graph = sample.open(&cold(threads)).unwrap();
            graph.memory().plan_residency();
            for _ in 0..2 {
                let (stats, arcs) = pass(&graph);
                assert_eq!(stats.bytes_read, file_bytes(&graph), "{layout:?}");
                assert_eq!(arcs, graph.manifest().arcs);
                assert_eq!(stats.bytes_resident, 0);
            }
        }
    }
}

#[test]
fn what_is_resident_is_not_read_again() {
    for layout in LAYOUTS {
        let sample = Sample::new(layout);
        let graph = sample.open(&OpenOptions { residency: Some(true), ..cold(2) }).unwrap();
        let bytes = file_bytes(&graph);
        let half = bytes / 2;
        let held =
            graph.memory().reserve(graph.memory().budget().left() - half, "all but half").unwrap();
        graph.memory().plan_residency();
        assert_eq!(pass(&graph).0.bytes_read, bytes, "{layout:?}");
        let resident = graph.memory().resident_bytes();
        let block = u64::from(layout.block_bytes);
        assert!(resident <= half && resident + block > half, "{resident} of {half} {layout:?}");
        for _ in 0..2 {
            let (stats, arcs) = pass(&graph);
            let found = (stats.bytes_read, stats.bytes_resident, arcs);
            assert_eq!(found, (bytes - resident, resident, graph.manifest().arcs), "{layout:?}");
        }
        drop(held);
        graph.memory().plan_residency();
        assert_eq!(pass(&graph).0.bytes_read, bytes - resident);
        assert_eq!(pass(&graph).0.bytes_read, 0);
        // State that a run needs takes the room of blocks.
        let held =
            graph.memory().reserve(graph.memory().budget().left() - half, "all but half").unwrap();
        assert!(graph.memory().resident_bytes() <= half);
        let (stats, arcs) = pass(&graph);
        assert_eq!(arcs, graph.manifest().arcs);
        assert!(stats.bytes_read >= half);
        drop(held);
    }
}

/// What a pass reads ahead is the next one's, and is lost only if another pass comes.
#[test]
fn reads_that_were_begun_early_count_once() {
    for layout in LAYOUTS {
        let sample = Sample::new(layout);
        for (threads, residency) in [(1, false), (2, true), (3, false)] {
            let how = OpenOptions { residency: Some(residency), ..cold(threads) };
            let graph = sample.open(&how).unwrap();
            let (bytes, arcs) = (file_bytes(&graph), graph.manifest().arcs);
            let held = graph
                .memory()
                .reserve(graph.memory().budget().left() - bytes / 2, "all but half")
                .unwrap();
            graph.memory().plan_residency();
            assert_eq!(
                pass_then(&graph, NextPass::Same),
                (graph.totals().get(), arcs),
                "{layout:?}"
            );
            let missing = bytes - graph.memory().resident_bytes();
            for _ in 0..3 {
                let (stats, visited) = pass_then(&graph, NextPass::Same);
                assert_eq!((stats.bytes_read, visited), (missing, arcs), "{layout:?}");
            }
            let before = graph.totals().get();
            let (_, visited) = pass(&graph);
            assert_eq!((graph.totals().get().since(&before).bytes_read, visited), (missing, arcs));
            // Other blocks are resident now: what was begun is of no use.
            pass_then(&graph, NextPass::Same);
            drop(held);
            graph.memory().plan_residency();
            let (stats, visited) = pass(&graph);
            assert_eq!(visited, arcs);
            assert!(stats.bytes_read >= missing, "{layout:?}");
        }
    }
}

/// A pass goes on rightly while another run takes the memory of its blocks.
#[test]
fn a_block_that_is_given_up_in_a_pass_is_still_visited() {
    let sample = Sample::new(Layout { block_bytes: 64 << 10, edges: 100_000, ..PACKED });
    let graph = sample.open(&OpenOptions { residency: Some(true), ..cold(1) }).unwrap();
    graph.memory().plan_residency();
    pass(&graph);
    let arcs = AtomicU64::new(0);
    graph
        .tiles()
        .pass(
            (&graph.tiles().select(|_| true), NextPass::Unknown),
            |_| (),
            |(), entry, _| {
                arcs.fetch_add(u64::from(entry.arcs), Ordering::Relaxed);
                drop(
                    graph
                        .memory()
                        .reserve(graph.memory().budget().left(), "another run's state")
                        .unwrap(),
                );
                Ok(())
            },
            |()| Ok(()),
        )
        .unwrap();
    assert_eq!(graph.memory().resident_bytes(), 0);
    assert_eq!(arcs.into_inner(), graph.manifest().arcs);
}

/// A pass by tile visits every segment once, and of the blocks that a worker holds together, whose strips are as many
/// as it can be at, each tile's one after the other: read or resident.
#[test]
fn blocks_are_gone_over_together_tile_by_tile() {
    let sample = Sample::new(Layout { block_bytes: 4 << 10, edges: 100_000, ..PACKED });
    let graph = sample.open(&OpenOptions { residency: Some(true), ..cold(1) }).unwrap();
    assert_eq!(graph.memory().blocks_to_hold(), 48);
    graph.memory().plan_residency();
    let all = graph.tiles().select(|_| true);
    let order = |strips: usize| {
        let seen = Mutex::new(Vec::new());
        let see = |(): &mut (), run: &SegmentRun<'_>| {
            for (entry, segment) in run {
                assert_eq!((segment.row_base, segment.rows), (entry.row_base, entry.rows));
                assert_eq!(entry.column_tile, run[0].0.column_tile);
                seen.lock().unwrap().push((entry.block, entry.offset, entry.column_tile));
            }
            Ok(())
        };
        let pass = (&all, NextPass::Unknown);
        graph.tiles().pass_by_tile(pass, strips, |_| (), see, |()| Ok(())).unwrap();
        seen.into_inner().unwrap()
    };
    let turns = |seen: &[(u32, u32, u32)]| seen.windows(2).filter(|w| w[0].2 > w[1].2).count();
    for _ in ["read", "resident"] {
        let (apart, together) = (order(1), order(8));
        for seen in [&apart, &together] {
            let mut seen = seen.clone();
            seen.sort_unstable();
            let stored = graph.tiles().segments().iter();
            assert!(seen.into_iter().eq(stored.map(|e| (e.block, e.offset, e.column_tile))));
        }
        // From one tile back to an earlier one: once a strip, or once for several.
        assert!(4 * turns(&together) < turns(&apart), "{} {}", turns(&together), turns(&apart));
    }
}

/// A pass by tile holds blocks in memory that it reserves where there is enough, and then gives back; others have as
/// much as they have always taken.
#[test]
fn blocks_are_held_where_memory_has_room() {
    let layout = Layout { block_bytes: 128 << 10, edges: 300_000, ..PACKED };
    let sample = Sample::new(layout);
    for (memory, held) in [(40 << 20, 0..1), (400 << 20, 8..49)] {
        let graph = sample.open(&OpenOptions { memory: Some(memory), ..cold(1) }).unwrap();
        let opened = graph.memory().budget().used();
        let all = graph.tiles().select(|_| true);
        let most = AtomicU64::new(0);
        let see = |(): &mut (), _: &SegmentRun<'_>| {
            most.fetch_max(graph.memory().budget().used() - opened, Ordering::Relaxed);
            Ok(())
        };
        let pass = (&all, NextPass::Unknown);
        graph.tiles().pass_by_tile(pass, 8, |_| (), see, |()| Ok(())).unwrap();
        let to_hold = graph.memory().blocks_to_hold() as u64;
        assert!(held.contains(&to_hold), "{to_hold}");
        // As many are read meanwhile, eight of them as always.
        let more = (2 * to_hold).saturating_sub(8) * u64::from(layout.block_bytes);
        assert_eq!(most.into_inner(), more);
        assert_eq!(graph.memory().budget().used(), opened);
    }
}

/// Lists that are much of the file are for the threads of a pass, also where all of them are kept in memory: a search
/// of a graph with hubs has levels of few vertices and of many arcs.
#[test]
fn many_arcs_of_few_vertices_are_not_near() {
    let sample = Sample::new(Layout { edges: 100_000, ..PACKED });
    let graph = sample.open(&cold(1)).unwrap();
    let mut lists = NearLists::new(&graph, Direction::Out, 16 << 20).unwrap().unwrap();
    let all: Vec<u32> = (0..graph.vertices() as u32).collect();
    let mut degrees = vec![0; all.len()];
    lists.visit(&all, |v, _| degrees[v as usize] += 1).unwrap();
    let before = graph.totals().get().bytes_read;
    lists.visit(&all, |_, _| ()).unwrap();
    assert_eq!(graph.totals().get().bytes_read, before, "all lists are kept");
    let with = |wanted: fn(u32) -> bool| -> Vec<u32> {
        all.iter().copied().filter(|&v| wanted(degrees[v as usize])).collect()
    };
    let (long, short) = (with(|degree| degree > 30), with(|degree| degree <= 1));
    assert!(long.len() > 100 && short.len() > 100);
    // Not the first, which share a page with long ones.
    assert!(lists.is_near(&short[short.len() - 100..]));
    assert!(lists.is_near(&long[..16]) && !lists.is_near(&long[..100]));
}
