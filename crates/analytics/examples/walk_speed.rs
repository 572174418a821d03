//! How fast BFS, SSSP and WCC run over one graph, run after run: what the first run pays for
//! reading, and what the later ones do with everything in memory.
//!
//! ```text
//! cargo run --release --example walk_speed -- GRAPH.tg [bfs|sssp|wcc] [RUNS] [MEMORY MiB] [THREADS]
//! ```

use std::path::Path;
use std::time::Instant;

use tiergraph_analytics::{RunReport, bfs, sssp, wcc};
use tiergraph_core::{Error, ErrorKind, Result, Silent};
use tiergraph_graph::{Direction, Graph, OpenOptions};

/// Sources that BFS and SSSP start from, as `bench/peers.py` has.
const SOURCES: usize = 4;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| {
        arguments.get(i).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let Some(path) = arguments.first() else {
        return Err(Error::new(ErrorKind::Input, "time walks").expected("GRAPH.tg"));
    };
    let chosen = arguments.get(1).map(String::as_str);
    let options = OpenOptions {
        memory: Some((number(3, 4096) as u64) << 20),
        threads: Some(number(4, 2)),
        ..OpenOptions::default()
    };
    let graph = Graph::open(Path::new(path), &options)?;
    let sources = sources(&graph)?;
    for name in ["wcc", "bfs", "sssp"] {
        if chosen.is_some_and(|c| c != name) {
            continue;
        }
        for run in 0..number(2, 5) {
            for &source in if name == "wcc" { &sources[..1] } else { &sources[..] } {
                let since = Instant::now();
                let report = match name {
                    "wcc" => wcc(&graph, &Silent)?.1,
                    "bfs" => bfs(&graph, source, &Silent)?.1,
                    _ => sssp(&graph, source, &Silent)?.1,
                };
                print(&report, run, source, since.elapsed().as_secs_f64());
            }
        }
    }
    Ok(())
}

/// Vertices with arcs, spread over the graph's order: hubs and leaves.
fn sources(graph: &Graph) -> Result<Vec<u32>> {
    let degrees = graph.degrees().of(Direction::Out)?;
    let with_arcs: Vec<u32> =
        (0..degrees.len() as u32).filter(|&v| degrees[v as usize] > 0).collect();
    Ok((0..SOURCES).filter_map(|i| with_arcs.get(with_arcs.len() * i / SOURCES).copied()).collect())
}

fn print(report: &RunReport, run: usize, source: u32, seconds: f64) {
    println!(
        "{} run {run} from {source}: {:.1} ms, {:.1} in its {} iterations, {:.2} passes",
        report.algorithm,
        seconds * 1e3,
        report.seconds * 1e3,
        report.iterations,
        report.passes,
    );
    if run < 2 {
        for step in &report.details {
            println!(
                "    {:<8}{:9.2} ms {:10.2} MB read {:12} counted",
                step.how,
                step.seconds * 1e3,
                step.bytes_read as f64 / 1e6,
                step.measure
            );
        }
    }
}
