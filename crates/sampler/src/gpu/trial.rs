//! A trial of who reads rows from drives faster, the GPU or the host.

use std::time::Instant;

use serde::Serialize;
use tiergraph_core::{Draws, Result};
use tiergraph_gpu::kernels::{MissingRow, Sampler};
use tiergraph_gpu::{DeviceBuf, DeviceView, Stream};
use tiergraph_graph::Graph;

use super::row_reads::RowReads;

/// The most bytes of device memory that the rows of a trial take as float32.
const MOST_BYTES: usize = 64 << 20;
/// How often each reads all rows of the trial; the fastest counts.
const TURNS: usize = 3;

/// Rows a second that each brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ReadRates {
    /// By reads that the GPU started.
    pub by_gpu: f64,
    /// By reads that the host started.
    pub by_host: f64,
}

impl ReadRates {
    /// The rates at which the GPU and the host, in this order, read the same rows of the features `name`, drawn
    /// evenly, in turn.
    pub(super) fn tried(
        graph: &Graph,
        name: &str,
        (stream, sampler): (&Stream, &Sampler),
        [by_gpu, by_host]: [&mut RowReads; 2],
    ) -> Result<Self> {
        let (features, vertices) = (graph.features().get(name)?, graph.vertices());
        let dim = features.dim();
        let most = (MOST_BYTES / (dim * size_of::<f32>())).min(sampler.n_id().len()).min(vertices);
        let mut draws = Draws::new(0);
        let drawn: Vec<u32> = (0..most).map(|_| draws.below(vertices as u64) as u32).collect();
        let listed = |number: &dyn Fn(u32) -> u32| -> Vec<MissingRow> {
            (0..).zip(&drawn).map(|(target, &v)| MissingRow { vertex: number(v), target }).collect()
        };
        // Kernels ask for rows by their numbers in the file.
        let (of_gpu, of_host) = (listed(&|v| features.row(v) as u32), listed(&|v| v));
        let x = DeviceBuf::<f32>::new(stream.device(), most * dim)?;
        let mut rates = Self::default();
        for _ in 0..TURNS {
            for (reads, wanted, rate) in [
                (&mut *by_gpu, &of_gpu, &mut rates.by_gpu),
                (&mut *by_host, &of_host, &mut rates.by_host),
            ] {
                let mut missing = reads.list(stream.device(), sampler)?;
                missing.list(stream, wanted)?;
                stream.synchronize()?;
                let since = Instant::now();
                let x = DeviceView::at(x.ptr(), x.len());
                let ticket = reads.begin(stream, &mut missing, x)?;
                let done = reads.read(ticket)?;
                done.synchronize()?;
                *rate = rate.max(most as f64 / since.elapsed().as_secs_f64());
            }
        }
        Ok(rates)
    }
}
