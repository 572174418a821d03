//! A thread pool that reads feature rows into buffers, page by page: rows on a page share its read.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use tiergraph_core::{Cancel, Result, panics, threads};
use tiergraph_gpu::kernels::{MissingRow, PieceLayout};
use tiergraph_graph::{Features, Graph, PageReader, PagesRead};
use tiergraph_mem::AlignedBuf;

use crate::gathering::fragments::Fragments;

/// A job: rows of one batch to read into one buffer.
pub(super) struct Job {
    pub ticket: u64,
    pub rows: Vec<MissingRow>,
    pub buffer: AlignedBuf,
}

/// The result of a job: its buffer has the rows, unless reading failed.
pub(super) struct Ended {
    pub ticket: u64,
    pub rows: usize,
    pub buffer: AlignedBuf,
    pub read: Result<PagesRead>,
}

/// A pool of threads that read rows. Dropping it stops their reads.
pub(super) struct RowReaders {
    jobs: Option<Sender<Job>>,
    ended: Receiver<Ended>,
    threads: Vec<JoinHandle<()>>,
    stop: Cancel,
}

impl RowReaders {
    /// A pool of `threads` readers of the features `name`, which write buffers of `layout`.
    pub fn new(
        graph: &Arc<Graph>,
        name: &str,
        layout: PieceLayout,
        threads: usize,
    ) -> Result<Self> {
        graph.features().get(name)?;
        let ((jobs, to_do), (send, ended)) = (unbounded::<Job>(), unbounded());
        let stop = Cancel::default();
        let mut readers = Self { jobs: Some(jobs), ended, threads: Vec::new(), stop };
        for number in 0..threads {
            let mut reader = PageReader::new(graph)?;
            reader.stop_by(readers.stop.clone());
            let (graph, name, to_do, send) =
                (Arc::clone(graph), name.to_owned(), to_do.clone(), send.clone());
            let run = move || {
                for mut job in to_do {
                    let read =
                        panics::caught(|| read_rows(&graph, &name, layout, &mut reader, &mut job));
                    let Job { ticket, rows, buffer } = job;
                    let ended = Ended { ticket, rows: rows.len(), buffer, read };
                    if send.send(ended).is_err() {
                        return;
                    }
                }
            };
            readers.threads.push(threads::start(&format!("rows-{number}"), run)?);
        }
        Ok(readers)
    }

    /// Queues a job.
    pub fn begin(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The threads end when this sender does.
            let _ = jobs.send(job);
        }
    }

    /// The next job that has ended; `None` if none has.
    pub fn ended(&self) -> Option<Ended> {
        self.ended.try_recv().ok()
    }
}

impl Drop for RowReaders {
    fn drop(&mut self) {
        self.stop.cancel();
        self.jobs = None;
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn read_rows(
    graph: &Graph,
    name: &str,
    layout: PieceLayout,
    reader: &mut PageReader,
    job: &mut Job,
) -> Result<PagesRead> {
    let features: &Features = graph.features().get(name)?;
    let (targets, rows) = job.buffer.split_at_mut(layout.rows_at());
    let targets = targets.chunks_exact_mut(size_of::<u32>());
    targets.zip(&job.rows).for_each(|(to, row)| to.copy_from_slice(&row.target.to_le_bytes()));
    let wanted = job.rows.iter().map(|row| row.vertex).zip(0..);
    Fragments::new(features, wanted).read_into(features, reader, rows)
}
