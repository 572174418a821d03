//! Where the workers of an epoch and its caller meet, and what the workers do.
//!
//! A worker claims the next window when no more than `window + prefetch` batches are begun and not
//! yet taken. It samples the window, reserves the memory of its features, gathers them, and lays
//! the batches out. Windows reserve in their order, so that a later one never holds the memory that
//! an earlier one waits for. Which thread prepares a window, and when, changes nothing in it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_graph::PagesRead;
use tiergraph_mem::Reservation;

use crate::batch::MiniBatch;
use crate::edges::{EdgeValues, gather_features, read_numbers};
use crate::epoch::Prepared;
use crate::gather::{GatherReads, Wanted, gather};
use crate::matrix::{Delivery, Matrix};
use crate::shared::{SeedOrder, Shared, Tools};
use crate::stats::EpochStats;

/// How long a wait lasts before it looks whether the run was cancelled or memory became free.
pub(crate) const GLANCE: Duration = Duration::from_millis(20);

/// What the workers and the caller tell each other.
#[derive(Debug)]
pub(crate) struct State {
    /// The next batch to be claimed.
    pub(crate) claimed: usize,
    /// The next batch whose memory may be reserved.
    pub(crate) reserving: usize,
    /// The next batch to be taken.
    pub(crate) taken: usize,
    /// Whether the caller waits for it.
    pub(crate) waiting: bool,
    pub(crate) ready: BTreeMap<usize, Prepared>,
    pub(crate) failure: Option<Error>,
    pub(crate) stop: bool,
    /// Whether the caller was told how the epoch failed: it is told once.
    pub(crate) told: bool,
    pub(crate) stats: EpochStats,
}

#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) shared: Arc<Shared>,
    pub(crate) epoch: u64,
    pub(crate) order: SeedOrder,
    pub(crate) batches: usize,
    pub(crate) state: Mutex<State>,
    /// Something happened.
    pub(crate) news: Condvar,
    /// Ends the workers' reads.
    pub(crate) halt: Cancel,
}

/// Tells the caller if the worker that holds it panics.
struct Watch<'a>(&'a Board);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Error::new(ErrorKind::Input, "load batches").got("a panic in a worker"));
        }
    }
}

impl Board {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // No update leaves the state torn, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        self.news.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }

    fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.failure.get_or_insert(error);
        state.stop = true;
        drop(state);
        self.halt.cancel();
        self.news.notify_all();
    }

    /// What a worker does: windows, until there are no more.
    pub(crate) fn work(&self) {
        let _watch = Watch(self);
        let done = self.shared.take_tools().and_then(|mut tools| {
            let done = self.windows(&mut tools);
            self.shared.give_tools(tools);
            done
        });
        if let Err(error) = done {
            self.fail(error);
        }
    }

    fn windows(&self, tools: &mut Tools) -> Result<()> {
        tools.reader.stop_by(self.halt.clone());
        while let Some(window) = self.claim() {
            self.prepare(tools, window)?;
        }
        Ok(())
    }

    /// The next window, once there is room for it; `None` when all are claimed or the epoch ends.
    fn claim(&self) -> Option<Range<usize>> {
        let options = &self.shared.options;
        let mut state = self.lock();
        loop {
            if state.stop || state.claimed == self.batches {
                return None;
            }
            let begin = state.claimed;
            let end = self.batches.min(begin + self.window());
            if end - state.taken <= options.window + options.prefetch {
                state.claimed = end;
                return Some(begin..end);
            }
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Batches of a window: one where nothing is read, so that few batches occupy all threads.
    fn window(&self) -> usize {
        let rows = self.shared.rows.as_ref().map_or(0, |rows| rows.len());
        let options = &self.shared.options;
        let all = options.features.is_none() || rows == self.shared.graph.vertices() as u64;
        let columns = self.shared.topology.columns();
        let all = all && options.edge_features.is_none() && columns.read_numbers().is_none();
        let all = all && columns.choose_in_memory();
        if all && self.shared.topology.is_resident() { 1 } else { options.window }
    }

    /// Makes the batches of a window ready.
    fn prepare(&self, tools: &mut Tools, window: Range<usize>) -> Result<()> {
        self.shared.graph.cancel().check("load batches")?;
        let since = Instant::now();
        let mut batches = Vec::new();
        let reads =
            self.shared.sample(tools, self.epoch, &self.order, window.clone(), &mut batches)?;
        let seconds_sample = since.elapsed().as_secs_f64();
        let held = self.reserve(&window, &batches)?;
        let since = Instant::now();
        let (features, mut gathered) = self.gather(tools, &batches)?;
        let (edges, numbers, of_edges) = self.edges(tools, &batches)?;
        gathered += of_edges;
        gathered.read += numbers;
        let sampled = reads.read.pages + reads.values.pages;
        let mut stats = EpochStats {
            bytes_ssd: reads.read.bytes + reads.values.bytes + gathered.read.bytes,
            bytes_ssd_topology: reads.read.bytes,
            bytes_ssd_values: reads.values.bytes + numbers.bytes,
            bytes_host: reads.bytes_host + gathered.bytes_host,
            distinct_pages: reads.distinct_pages + gathered.read.pages,
            repeated_pages: sampled - reads.distinct_pages,
            reads: reads.read.reads + reads.values.reads + gathered.read.reads,
            missed_rows: gathered.missed_rows,
            seconds_sample,
            seconds_gather: since.elapsed().as_secs_f64(),
            ..EpochStats::default()
        };
        let (mut features, mut edges) = (features.into_iter(), edges.into_iter());
        let mut ready = Vec::new();
        for ((number, batch), held) in window.zip(batches).zip(held) {
            stats.nodes += batch.n_id.len() as u64;
            stats.edges += batch.e_id.len() as u64;
            let (input_id, x) = (self.input_id(number), features.next());
            let edges = edges.next().unwrap_or_default();
            ready.push((number, Prepared { batch, input_id, x, edges, held: Arc::new(held) }));
        }
        let mut state = self.lock();
        state.ready.extend(ready);
        state.stats.add(&stats);
        drop(state);
        self.news.notify_all();
        Ok(())
    }

    fn input_id(&self, number: usize) -> Vec<u32> {
        let range = self.order.range(number, &self.shared.options);
        match &self.order.places {
            Some(places) => places[range].to_vec(),
            None => (range.start as u32..range.end as u32).collect(),
        }
    }

    /// Reserves the memory of a window's batches, once all earlier windows have theirs.
    fn reserve(&self, window: &Range<usize>, batches: &[MiniBatch]) -> Result<Vec<Reservation>> {
        let features = self.shared.features()?;
        let edge_features = self.shared.edge_features()?.map(|(features, _)| features);
        let columns = self.shared.topology.columns();
        let delivery = self.shared.options.delivery;
        let mut held = Vec::new();
        for (number, batch) in window.clone().zip(batches) {
            let rows = batch.n_id.len();
            let x = features.map_or(0, |(f, _)| Matrix::bytes_of(f, rows, delivery));
            let edges = EdgeValues::bytes_of(batch.e_id.len(), columns, edge_features);
            let bytes = x + edges + batch.resident_bytes();
            held.push(self.reserve_one(window.start, number, bytes)?);
        }
        self.lock().reserving = window.end;
        self.news.notify_all();
        Ok(held)
    }

    /// Reserves the memory of batch `number`. While there is too little, waits for the caller to
    /// drop batches, unless it waits for this very window: then nobody would ever make room.
    fn reserve_one(&self, first: usize, number: usize, bytes: u64) -> Result<Reservation> {
        let mut state = self.lock();
        loop {
            if state.stop {
                return Err(Error::new(ErrorKind::Interrupted, "load batches").got("an early end"));
            }
            if state.reserving == first {
                let what = format!("batch {number} (a smaller batch, window or fanout needs less)");
                match self.shared.graph.reserve(bytes, &what) {
                    Ok(held) => return Ok(held),
                    Err(error) if state.waiting && state.taken >= first => return Err(error),
                    Err(_) => {}
                }
            }
            state = self.wait(state, GLANCE);
        }
    }

    /// What is known about the edges of a window's batches.
    fn edges(
        &self,
        tools: &mut Tools,
        batches: &[MiniBatch],
    ) -> Result<(Vec<EdgeValues>, PagesRead, GatherReads)> {
        let columns = self.shared.topology.columns();
        let mut edges = tools.sampler.take_values();
        edges.resize_with(batches.len(), EdgeValues::default);
        for (edges, batch) in edges.iter_mut().zip(batches) {
            edges.look_up(batch, columns);
        }
        let numbers = match columns.read_numbers() {
            Some(column) => read_numbers(column, &mut tools.reader, batches, &mut edges)?,
            None => PagesRead::default(),
        };
        let reads = match self.shared.edge_features()? {
            Some((features, rows)) => {
                gather_features(features, rows, &mut tools.reader, &mut edges)?
            }
            None => GatherReads::default(),
        };
        Ok((edges, numbers, reads))
    }

    /// The features of a window's batches.
    fn gather(
        &self,
        tools: &mut Tools,
        batches: &[MiniBatch],
    ) -> Result<(Vec<Matrix>, GatherReads)> {
        let Some((features, rows)) = self.shared.features()? else { return Ok(Default::default()) };
        let matrices = batches.iter().map(|batch| Matrix::stored(features, batch.n_id.len()));
        let mut matrices = matrices.collect::<Result<Vec<Matrix>>>()?;
        let pairs = batches.iter().zip(&mut matrices);
        let mut wanted: Vec<Wanted<'_>> = pairs
            .map(|(batch, matrix)| Wanted {
                vertices: &batch.n_id,
                rows: &mut matrix.bytes[..batch.n_id.len() * features.row_bytes()],
            })
            .collect();
        let reads =
            gather(rows, features, &mut tools.reader, &mut wanted, self.shared.options.sharing)?;
        if self.shared.options.delivery == Delivery::Floats {
            let floats = matrices.into_iter().map(|matrix| matrix.into_floats(features));
            matrices = floats.collect::<Result<_>>()?;
        }
        Ok((matrices, reads))
    }
}
