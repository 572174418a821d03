//! How fast a source hands out edges, alone: `source_speed PATH` or `source_speed rmat:24`.
//!
//! Prints one line a pass: edges, seconds, million edges a second. The first pass of a file may
//! wait for the disk; later ones read the page cache.

use std::path::Path;
use std::time::Instant;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_ingest::generate::{Generated, GeneratorOptions, Rmat, Uniform};
use tiergraph_ingest::source::{EdgeBatch, EdgeSource, OpenOptions, open};

fn source(name: &str, threads: usize) -> Result<Box<dyn EdgeSource>> {
    let options = GeneratorOptions { threads, ..GeneratorOptions::default() };
    let scale = |text: &str| {
        text.parse::<u32>().map_err(|e| Error::new(ErrorKind::Input, "read the scale").source(e))
    };
    if let Some(text) = name.strip_prefix("rmat:") {
        let model = Rmat::new(scale(text)?, 16, Rmat::GRAPH500, 1)?;
        return Ok(Box::new(Generated::new(model, 1, options)));
    }
    if let Some(text) = name.strip_prefix("uniform:") {
        let vertices = 1 << scale(text)?;
        return Ok(Box::new(Generated::new(Uniform::new(vertices, 16 * vertices, 1)?, 1, options)));
    }
    open(Path::new(name), &OpenOptions { threads, ..OpenOptions::default() })
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "rmat:20".into());
    let threads = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2);
    let mut source = source(&name, threads)?;
    let mut batch = EdgeBatch::default();
    for _ in 0..3 {
        let (mut edges, begin) = (0, Instant::now());
        while source.next_batch(&mut batch)? {
            edges += batch.len();
        }
        let seconds = begin.elapsed().as_secs_f64();
        println!("{edges} edges, {seconds:.3} s, {:.1} M edges/s", edges as f64 / seconds / 1e6);
        source.restart()?;
    }
    Ok(())
}
