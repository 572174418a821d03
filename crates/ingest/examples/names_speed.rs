//! How fast names are numbered: `cargo run --release --example names_speed [NAMES] [DISTINCT] [THREADS]`.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use tiergraph_ingest::Names;
use tiergraph_ingest::generate::hash::Counter;

fn main() {
    let mut given = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap());
    let (count, distinct) =
        (given.next().unwrap_or(20_000_000), given.next().unwrap_or(10_000_000));
    let threads = given.next().unwrap_or(2) as usize;
    let (names, words) = (Names::default(), Counter::new(1, 1));
    let (mut spent, mut numbers) = (0.0, Vec::new());
    for from in (0..count).step_by(1 << 17) {
        let (mut text, mut ends) = (Vec::new(), vec![0]);
        for at in from..count.min(from + (1 << 17)) {
            text.extend(format!("customer-{}", words.below(at, distinct)).into_bytes());
            ends.push(text.len());
        }
        numbers.resize(ends.len() - 1, 0);
        let begin = Instant::now();
        names.number(threads, |at| &text[ends[at]..ends[at + 1]], &mut numbers).unwrap();
        spent += begin.elapsed().as_secs_f64();
    }
    println!("{:.1} M/s, {} names", count as f64 / spent / 1e6, names.count());
}
