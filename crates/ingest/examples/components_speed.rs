//! How fast pairs are joined: `cargo run --release --example components_speed [PAIRS] [IDS]`.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use tiergraph_ingest::components::Components;
use tiergraph_ingest::generate::hash::{Counter, mix};
use tiergraph_ingest::{EdgeBatch, Endpoints};
use tiergraph_mem::Budget;

fn main() {
    let mut given = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap());
    let (pairs, ids) = (given.next().unwrap_or(50_000_000), given.next().unwrap_or(30_000_000));
    let words = Counter::new(1, 1);
    let mut components = Components::new(None, 2, &Budget::new(8 << 30)).unwrap();
    let mut spent = 0.0;
    for from in (0..pairs).step_by(1 << 17) {
        let (src, dst) = (from..pairs.min(from + (1 << 17)))
            .map(|at| {
                let a = words.below(2 * at, ids);
                (mix(a), mix(a / 4 * 4 + words.below(2 * at + 1, 5)))
            })
            .unzip();
        let batch = EdgeBatch { ends: Endpoints::U64 { src, dst }, weights: None };
        let begin = Instant::now();
        components.add(&batch).unwrap();
        spent += begin.elapsed().as_secs_f64();
    }
    let begin = Instant::now();
    let found = components.finish();
    let last = begin.elapsed().as_secs_f64();
    let speed = pairs as f64 / (spent + last) / 1e6;
    println!("{spent:.2} s and {last:.2} s: {speed:.1} M pairs/s, {} components", found.components);
}
