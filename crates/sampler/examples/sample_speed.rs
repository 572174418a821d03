//! How fast batches are sampled and gathered: `sample_speed GRAPH.tg [THREADS]`.

use std::path::Path;
use std::time::Instant;

use std::slice::from_ref;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Direction, Graph, OpenOptions};
use tiergraph_sampler::gathering::gather::copy_kept;
use tiergraph_sampler::{
    EpochKey, Fanout, MiniBatch, Purpose, Residency, RowStore, SampleOptions, SampledTypes,
    Sampler, Seeds, TableKind, Topology,
};

/// Seconds that each case is measured for.
const SECONDS: f64 = 2.0;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or_else(|| {
        Error::new(ErrorKind::Input, "use the arguments").expected("GRAPH.tg [THREADS]")
    })?;
    let threads = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2);
    let graph = Graph::open(Path::new(&path), &OpenOptions::default())?;
    let pages = graph.rows(Direction::In).pages().map_or(0, |rows| rows.index.len() as u64);
    for (name, keep) in
        [("decoded", Residency::Decoded), ("pages", Residency::Pages((0..pages).collect()))]
    {
        let since = Instant::now();
        let topology = Topology::open(&graph, Direction::In, &keep)?;
        println!("{name}: loaded in {:.2} s", since.elapsed().as_secs_f64());
        for batch in [1024, 8000] {
            for table in [TableKind::Dense, TableKind::Hashed] {
                let (edges, nodes) = sampled(&topology, batch, table, threads)?;
                println!(
                    "{name}, batch {batch}, {table:?}: {edges:.1} M edges/s, {nodes:.1} M nodes/s"
                );
            }
        }
    }
    if graph.features().names().any(|name| name == "x") {
        let all = 0..graph.vertices() as u32;
        let store = RowStore::load(&graph, graph.features().get("x")?, all.clone())?;
        for rows in [150_000, 600_000] {
            let bandwidth = gathered(&store, all.end, rows, threads)?;
            println!("gather {rows} rows of {} bytes: {bandwidth:.2} GB/s", store.row_bytes());
        }
    }
    Ok(())
}

/// Gigabytes of rows copied a second, of all threads.
fn gathered(store: &RowStore, vertices: u32, rows: u32, threads: u32) -> Result<f64> {
    let work = |thread: u32| -> f64 {
        let place = |i: u32| (i + thread * rows).wrapping_mul(0x9E37_79B1) % vertices;
        let wanted: Vec<u32> = (0..rows).map(place).collect();
        let mut out = vec![0; wanted.len() * store.row_bytes()];
        let (mut bytes, since) = (0, Instant::now());
        while since.elapsed().as_secs_f64() < SECONDS {
            copy_kept(store, &wanted, &mut out);
            bytes += out.len();
        }
        bytes as f64 / since.elapsed().as_secs_f64() * 1e-9
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|t| scope.spawn(move || work(t))).collect();
        let panicked = |_| Error::new(ErrorKind::Input, "gather").got("a panic");
        running.into_iter().map(|thread| thread.join().map_err(panicked)).sum()
    })
}

/// Million edges and nodes a second, of all threads.
fn sampled(topology: &Topology, size: u32, table: TableKind, threads: u32) -> Result<(f64, f64)> {
    let fanouts = vec![Fanout::Most(25), Fanout::Most(10)];
    let options = SampleOptions { fanouts, ..SampleOptions::default() };
    let vertices = topology.offsets().vertices() as u32;
    let work = |thread: u32| -> Result<(f64, f64)> {
        let mut sampler =
            Sampler::new(SampledTypes::of_one(vertices as usize, &options), Some(table))?;
        let key = EpochKey::new(1, 0, Purpose::Sample);
        let (mut edges, mut nodes, mut batch) = (0, 0, MiniBatch::default());
        let since = Instant::now();
        for number in (thread..).step_by(threads as usize) {
            let seed = |i: u32| (number * size + i).wrapping_mul(0x9E37_79B1) % vertices;
            let seeds: Vec<u32> = (0..size).map(seed).collect();
            sampler.sample(
                from_ref(topology),
                &[key],
                Seeds { number, vertices: &seeds, times: &[] },
                &mut batch,
            )?;
            edges += batch.edges[0].e_id.len();
            nodes += batch.nodes[0].n_id.len();
            if since.elapsed().as_secs_f64() > SECONDS {
                break;
            }
        }
        let seconds = since.elapsed().as_secs_f64() * 1e6;
        Ok((edges as f64 / seconds, nodes as f64 / seconds))
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|t| scope.spawn(move || work(t))).collect();
        let mut sums = (0.0, 0.0);
        for thread in running {
            let panicked = |_| Error::new(ErrorKind::Input, "sample").got("a panic");
            let (edges, nodes) = thread.join().map_err(panicked)??;
            sums = (sums.0 + edges, sums.1 + nodes);
        }
        Ok(sums)
    })
}
