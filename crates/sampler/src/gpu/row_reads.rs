//! Reads of the feature rows that are on storage: the host's threads start them, or the GPU's kernels.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tiergraph_core::{Error, Result, panics, threads};
use tiergraph_gpu::kernels::{MissingRows, Sampler};
use tiergraph_gpu::{Device, DeviceView, Event, Stream};

use super::drive_rows::DriveRows;
use super::storage::{Storage, StorageReads};

/// Between two looks at what has come.
const LOOK: Duration = Duration::from_micros(20);

/// Who reads rows that are on storage.
pub(super) enum RowReads {
    /// The host's threads.
    Host(Storage),
    /// The GPU's kernels.
    Gpu(DriveRows),
}

impl RowReads {
    /// Who starts reads, and the way rows come.
    pub fn way(&self) -> &'static str {
        match self {
            Self::Host(_) => "the host, through pinned memory",
            Self::Gpu(drives) => drives.way(),
        }
    }

    /// Counts of reads so far.
    pub fn reads(&self) -> StorageReads {
        match self {
            Self::Host(storage) => storage.reads(),
            Self::Gpu(drives) => drives.reads(),
        }
    }

    /// Keeps rows in a page cache of at most `bytes` of device memory, as [`DriveRows::cache`] does.
    pub fn cache(&mut self, bytes: u64) -> Result<Option<u64>> {
        match self {
            Self::Host(_) => Ok(None),
            Self::Gpu(drives) => drives.cache(bytes),
        }
    }

    /// An empty list for the rows that a batch of `sampler` misses.
    pub fn list(&self, device: &Device, sampler: &Sampler) -> Result<MissingRows> {
        match self {
            Self::Host(_) => MissingRows::new(device, sampler),
            Self::Gpu(drives) => drives.list(device, sampler),
        }
    }

    /// Begins to read the rows that were found `missing` to rows at `x`, once `stream` gets there; returns
    /// their ticket. Another list may take the place of `missing`.
    pub fn begin(
        &mut self,
        stream: &Stream,
        missing: &mut MissingRows,
        x: DeviceView<f32>,
    ) -> Result<u64> {
        match self {
            Self::Host(storage) => storage.begin(stream, missing, x),
            Self::Gpu(drives) => drives.begin(stream, missing, x),
        }
    }

    /// Whether a batch's rows have not all come yet.
    fn is_reading(&self) -> bool {
        match self {
            Self::Host(storage) => storage.is_reading(),
            Self::Gpu(drives) => drives.is_reading(),
        }
    }

    /// Goes on with what has come, of any batch.
    fn proceed(&mut self) {
        match self {
            Self::Host(storage) => storage.proceed(),
            Self::Gpu(drives) => drives.proceed(),
        }
    }

    /// Has whoever waits for a batch told of `error`.
    fn fail(&mut self, error: Error) {
        match self {
            Self::Host(storage) => storage.fail(error),
            Self::Gpu(drives) => drives.fail(error),
        }
    }

    /// An event that happens when the rows of `ticket` are all where they are wanted, or `None` as long as
    /// some have not come. After the event, or an error, the ticket is of no use.
    fn look(&mut self, ticket: u64) -> Result<Option<Event>> {
        match self {
            Self::Host(storage) => storage.look(ticket),
            Self::Gpu(drives) => drives.look(ticket),
        }
    }

    /// Drops a batch that is not waited for any more, if nothing writes to its memory; whether it is dropped.
    fn give_up(&mut self, ticket: u64) -> bool {
        match self {
            Self::Host(storage) => {
                storage.give_up(ticket);
                true
            }
            Self::Gpu(drives) => drives.give_up(ticket),
        }
    }

    /// Reads the rows of `ticket`, where no thread does.
    pub fn read(&mut self, ticket: u64) -> Result<Event> {
        loop {
            self.proceed();
            match self.look(ticket)? {
                Some(done) => return Ok(done),
                None => thread::sleep(LOOK),
            }
        }
    }
}

/// The rows that are on storage: whoever makes batches begins to read them, a thread goes on with that and
/// sees that they are as they should be, and whoever hands batches over waits for what it tells.
pub(super) struct LateRows {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// Told when there is something to read, or to stop.
    changed: Condvar,
    /// What the thread found of batches that nobody has asked for since: what happens when a batch's rows are
    /// all where they are wanted. Locked for moments, where the state is locked while the driver is called.
    come: Mutex<HashMap<u64, Result<Event>>>,
}

struct State {
    reads: RowReads,
    /// The tickets of batches whose rows have not all come, in order.
    open: Vec<u64>,
    is_over: bool,
}

impl Shared {
    /// A call that panicked left counts behind, and no batch half begun.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing that can panic is done with this lock.
    fn come(&self) -> MutexGuard<'_, HashMap<u64, Result<Event>>> {
        self.come.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on while rows are read, until it is over.
    fn run(&self) {
        let mut state = self.lock();
        while !state.is_over {
            if state.open.is_empty() && !state.reads.is_reading() {
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let proceeded = panics::caught(|| {
                state.reads.proceed();
                self.tell(&mut state);
                Ok(())
            });
            if let Err(error) = proceeded {
                state.reads.fail(error);
            }
            drop(state);
            thread::sleep(LOOK);
            state = self.lock();
        }
    }

    /// Tells of the batches whose rows have all come, or will not.
    fn tell(&self, state: &mut State) {
        let State { reads, open, .. } = state;
        open.retain(|&ticket| {
            let found = reads.look(ticket).transpose();
            found.map(|found| self.come().insert(ticket, found)).is_none()
        });
    }
}

impl LateRows {
    /// Rows that `reads` reads.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn new(reads: RowReads) -> Result<Self> {
        let state = Mutex::new(State { reads, open: Vec::new(), is_over: false });
        let (changed, come) = (Condvar::new(), Mutex::default());
        let shared = Arc::new(Shared { state, changed, come });
        let own = Arc::clone(&shared);
        let thread = Some(threads::start("rows-gpu", move || own.run())?);
        Ok(Self { shared, thread })
    }

    /// Who starts the reads of rows, and the way rows come.
    pub fn way(&self) -> &'static str {
        self.shared.lock().reads.way()
    }

    /// Counts of reads so far.
    pub fn reads(&self) -> StorageReads {
        self.shared.lock().reads.reads()
    }

    /// Begins to read the rows that were found missing to rows at `x`, as [`RowReads::begin`] does, and wakes
    /// the thread that goes on with them.
    pub fn begin(
        &self,
        stream: &Stream,
        missing: &mut MissingRows,
        x: DeviceView<f32>,
    ) -> Result<u64> {
        let mut state = self.shared.lock();
        let ticket = state.reads.begin(stream, missing, x)?;
        state.open.push(ticket);
        drop(state);
        self.shared.changed.notify_all();
        Ok(ticket)
    }

    /// An event that happens when the rows of `ticket` are all where they are wanted, or `None` if they have not
    /// come when `patience` is over or `is_called` says so.
    ///
    /// # Errors
    /// A row that could not be read or is damaged; a batch that was dropped after another's error.
    pub fn wait(
        &self,
        ticket: u64,
        patience: Duration,
        mut is_called: impl FnMut() -> bool,
    ) -> Result<Option<Event>> {
        let since = Instant::now();
        loop {
            let found = self.shared.come().remove(&ticket).transpose()?;
            if found.is_some() || is_called() || since.elapsed() >= patience {
                return Ok(found);
            }
            thread::sleep(LOOK);
        }
    }

    /// Drops a batch that is not waited for any more, when nothing writes to its memory.
    pub fn give_up(&self, ticket: u64) {
        loop {
            let mut state = self.shared.lock();
            state.open.retain(|&open| open != ticket);
            let has_ended = state.reads.give_up(ticket);
            drop(state);
            if has_ended {
                break;
            }
            thread::sleep(LOOK);
        }
        if let Some(Ok(event)) = self.shared.come().remove(&ticket) {
            // After an error of the driver no kernel runs any more.
            let _ = event.synchronize();
        }
    }
}

impl Drop for LateRows {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        // A thread that panicked has nothing left to end.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}
