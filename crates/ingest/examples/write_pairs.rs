//! Writes generated edges as pairs of 4-byte ids: `write_pairs rmat:22 FILE.u32`.
//!
//! A fixed input for `build_speed` that costs no generating.

use std::fs::File;
use std::io::{BufWriter, Write};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_ingest::generate::{Generated, GeneratorOptions, Rmat};
use tiergraph_ingest::source::{EdgeBatch, EdgeSource};

fn main() -> Result<()> {
    let usage = || Error::new(ErrorKind::Input, "use the arguments").expected("rmat:SCALE FILE");
    let mut arguments = std::env::args().skip(1);
    let (Some(model), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err(usage());
    };
    let scale = model.strip_prefix("rmat:").and_then(|text| text.parse().ok()).ok_or_else(usage)?;
    let model = Rmat::new(scale, 16, Rmat::GRAPH500, 1)?;
    let mut source = Generated::new(model, 1, GeneratorOptions::default());
    let io = |e| Error::io("write", &path, e);
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&path).map_err(io)?);
    let mut batch = EdgeBatch::default();
    while source.next_batch(&mut batch)? {
        for (source, target) in batch.pairs() {
            let pair = [source as u32, target as u32];
            file.write_all(bytemuck::bytes_of(&pair)).map_err(io)?;
        }
    }
    file.flush().map_err(io)
}
