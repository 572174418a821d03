//! How fast a graph is built, and in how much memory.
//!
//! `build_speed rmat:24|uniform:20|FILE OUTPUT [undirected] [dedup] [weights] [raw] [training]
//! [both] [memory=1GiB] [threads=2]
//! [strip_arcs=N]` builds the graph, prints the report and the peak resident
//! size as JSON, and leaves the graph at OUTPUT.

use std::path::Path;

use tiergraph_core::{ByteSize, Cancel, Error, ErrorKind, Result, Silent};
use tiergraph_format::directory::Existing;
use tiergraph_format::manifest::Codec;
use tiergraph_ingest::build::{BuildOptions, Direction, Duplicates, Purpose, build};
use tiergraph_ingest::generate::{Generated, GeneratorOptions, Rmat, Uniform, WeightRange};
use tiergraph_ingest::source::{EdgeSource, OpenOptions, open};

fn number<T: std::str::FromStr>(text: &str) -> Result<T> {
    let bad = |_| Error::new(ErrorKind::Input, "read the number").object(text);
    text.parse().map_err(bad)
}

fn source(name: &str, options: GeneratorOptions) -> Result<Box<dyn EdgeSource>> {
    if let Some(text) = name.strip_prefix("rmat:") {
        let model = Rmat::new(number(text)?, 16, Rmat::GRAPH500, 1)?;
        return Ok(Box::new(Generated::new(model, 1, options)));
    }
    if let Some(text) = name.strip_prefix("uniform:") {
        let vertices = 1 << number::<u32>(text)?;
        return Ok(Box::new(Generated::new(Uniform::new(vertices, 16 * vertices, 1)?, 1, options)));
    }
    open(Path::new(name), &OpenOptions { threads: options.threads, ..OpenOptions::default() })
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let input = arguments.next().unwrap_or_else(|| "rmat:18".into());
    let output = arguments.next().unwrap_or_else(|| "speed.tg".into());
    let mut generator = GeneratorOptions::default();
    let mut options = BuildOptions { overwrite: Existing::Replace, ..BuildOptions::default() };
    for argument in arguments {
        match argument.split_once('=').unwrap_or((&argument, "")) {
            ("undirected", _) => options.direction = Direction::Undirected,
            ("dedup", _) => options.duplicates = Duplicates::Remove,
            ("weights", _) => generator.weights = Some(WeightRange::Byte),
            ("raw", _) => options.codec = Codec::Raw,
            ("training", _) => options.purpose = Purpose::Training,
            ("both", _) => options.purpose = Purpose::Both,
            ("memory", size) => options.memory = Some(size.parse::<ByteSize>()?.0),
            ("strip_arcs", n) => options.strip_arcs = Some(number(n)?),
            ("columns_log2", n) => options.columns_log2 = Some(number(n)?),
            ("threads", n) => options.threads = number(n)?,
            (other, _) => {
                return Err(Error::new(ErrorKind::Input, "use the argument").object(other));
            }
        }
    }
    generator.threads = options.threads;
    let mut source = source(&input, generator)?;
    let report = build(&mut *source, Path::new(&output), &options, &Silent, &Cancel::default())?;
    let mut json = serde_json::to_value(&report)
        .map_err(|e| Error::new(ErrorKind::Input, "print the report").source(e))?;
    json["peak_rss_bytes"] = tiergraph_mem::peak_rss_bytes()?.into();
    json["bytes_per_edge"] = (report.bytes as f64 / report.edges.max(1) as f64).into();
    println!("{json:#}");
    Ok(())
}
