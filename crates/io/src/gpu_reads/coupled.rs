//! Reads whose warps submit and poll by themselves: what [`GpuReads`](super::GpuReads) is compared with.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::Stream;
use tiergraph_gpu::kernels::{CoupledKernel, CoupledPairs, ReadWatch, RowRequests, RowTargets};

use super::queues::{QueueOptions, Queues};
use super::{GpuDrive, GpuReadOptions, RowsOnDrives, StopReads, failure};

/// Reads of rows by one kernel, each warp of which asks for a row and waits for it (as BaM and GIDS do).
#[derive(Debug)]
pub struct CoupledReads {
    // Dropped first: it ends the kernels that use what is behind it.
    queues: Queues,
    options: GpuReadOptions,
    kernel: CoupledKernel,
    watch: ReadWatch,
    pairs: CoupledPairs,
    broken: bool,
}

impl CoupledReads {
    /// Reads of `rows` on `drives`, by the GPU of `stream`. Of `options`, those of batches and threads
    /// say nothing here.
    ///
    /// # Errors
    /// As [`GpuReads::new`](super::GpuReads::new).
    pub fn new(
        stream: &Stream,
        drives: Vec<GpuDrive>,
        rows: &RowsOnDrives,
        options: GpuReadOptions,
    ) -> Result<Self> {
        let GpuReadOptions { pairs_per_drive, entries, .. } = options;
        let of_pairs = QueueOptions { sets: 1, pairs_per_drive, entries };
        let queues = Queues::new(stream.device(), drives, rows, of_pairs)?;
        if queues.places.parts() > 1 {
            return Err(Error::new(ErrorKind::Input, "read rows by warps that wait for them")
                .expected("groups that cross no stripe")
                .got(format!("{rows:?}")));
        }
        let (set, log2) = (&queues.sets[0], queues.entries_log2);
        Ok(Self {
            kernel: CoupledKernel::new(stream.device())?,
            watch: ReadWatch::new(stream, queues.stop_word(), options.timeout)?,
            pairs: CoupledPairs::new(stream, &set.addresses, log2, set.staging, queues.places)?,
            options,
            broken: false,
            queues,
        })
    }

    /// A handle that stops a kernel which waits for drives.
    pub fn stop(&self) -> StopReads {
        self.queues.stop()
    }

    /// Reads all requested rows to `to` by at most `blocks` blocks, and waits for them.
    ///
    /// # Errors
    /// As [`GpuReads::check`](super::GpuReads::check).
    pub fn read(
        &mut self,
        stream: &Stream,
        blocks: u32,
        requests: RowRequests,
        to: RowTargets,
    ) -> Result<()> {
        if self.broken {
            return Err(Error::new(ErrorKind::Io, "read rows by a GPU").got("an earlier failure"));
        }
        self.kernel.read(stream, blocks, &mut self.pairs, &self.watch, requests, to)?;
        let failures = self.watch.failures(stream)?;
        self.broken = failures.broken.is_some();
        let GpuReadOptions { pairs_per_drive, timeout, .. } = self.options;
        if let Some(failure) = failures.broken.or(failures.refused) {
            self.watch.forget_refused(stream)?;
            return Err(failure::error(failure, pairs_per_drive, timeout));
        }
        Ok(())
    }
}
