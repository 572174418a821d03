//! What an epoch reads and how long it takes: `epoch_speed GRAPH.tg SHARE WINDOW THREADS [BATCHES]`.
//!
//! SHARE of the topology's and the features' bytes is kept in memory, chosen by presampling. Nothing
//! is trained: the caller takes batches as fast as they come.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Graph, OpenOptions};
use tiergraph_sampler::{Fanout, Loader, LoaderOptions, Plan, Residency, SampleOptions};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| arguments.get(i).and_then(|text| text.parse::<f64>().ok());
    let (Some(share), Some(window), Some(threads)) = (number(1), number(2), number(3)) else {
        let usage = "GRAPH.tg SHARE WINDOW THREADS [BATCHES]";
        return Err(Error::new(ErrorKind::Input, "use the arguments").expected(usage));
    };
    let batches = number(4).unwrap_or(100.0) as usize;
    let graph = Arc::new(Graph::open(Path::new(&arguments[0]), &OpenOptions::default())?);
    let row_bytes = graph.features().get("x")?.row_bytes();
    let fanouts = vec![Fanout::Most(25), Fanout::Most(10)];
    let options = LoaderOptions {
        window: window as usize,
        threads: threads as usize,
        prefetch: (window * threads) as usize,
        features: vec![Some("x".into())],
        ..LoaderOptions::new(SampleOptions { fanouts, ..SampleOptions::default() })
    };
    let every = (graph.vertices() / (batches * options.batch_size)).max(1);
    let seeds: Vec<u32> = (0..graph.vertices() as u32).step_by(every).collect();
    let counter = LoaderOptions { features: vec![None], ..options.clone() };
    let counter = Loader::new(Arc::clone(&graph), counter, &Residency::Decoded, [])?;
    let hotness = counter.presample(0, &seeds, batches)?;
    drop(counter);
    let page_bytes = hotness.pages[0].uses.len() * 4096;
    let capacity = (page_bytes + graph.vertices() * row_bytes) as f64 * share;
    let placed = hotness.place(&Plan::default(), &[row_bytes], capacity as u64);
    println!("kept: {} rows", placed.rows[0].len());
    let loader = Loader::of_types(Arc::clone(&graph), options, placed)?;
    let since = Instant::now();
    let mut epoch = loader.epoch(1, &seeds, 0)?;
    for prepared in epoch.by_ref().take(batches) {
        prepared?;
    }
    let seconds = since.elapsed().as_secs_f64();
    let stats = epoch.stats();
    println!("{stats:#?}");
    println!(
        "{seconds:.2} s: {:.1} batches/s, {:.2} GB/s from storage, {:.0} K reads/s, {:.2} rows a page",
        stats.batches as f64 / seconds,
        stats.bytes_ssd as f64 / seconds * 1e-9,
        stats.reads as f64 / seconds * 1e-3,
        stats.missed_rows as f64 / stats.distinct_pages as f64,
    );
    Ok(())
}
