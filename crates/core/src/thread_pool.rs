//! A pool of threads that stay: all passes and all loops over vertices run on them.
//!
//! A thread that is started for a loop begins where its parent runs, and may wait for that core for
//! milliseconds while another idles.

use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::ThreadPoolBuilder;

use crate::{Error, ErrorKind, Result, threads};

#[derive(Debug)]
struct Started {
    threads: rayon::ThreadPool,
    /// The process that has them: one that is forked from it has not.
    process: u32,
}

/// A pool of a fixed number of threads. They start at the first call that needs them, serve all later
/// calls, and are told to end, but not joined, when the pool drops.
#[derive(Debug)]
pub struct ThreadPool {
    size: usize,
    started: OnceLock<Started>,
}

impl ThreadPool {
    /// A pool of `size` threads, none of which has started.
    pub fn new(size: usize) -> Self {
        Self { size, started: OnceLock::new() }
    }

    /// The number of threads in the pool.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Calls `work(number)` on every thread and waits; returns the results in the order of the numbers,
    /// from 0.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system gives no more threads; [`ErrorKind::Input`] in a process that was
    /// forked after the threads had started.
    pub fn each<R: Send>(&self, work: impl Fn(usize) -> R + Sync) -> Result<Vec<R>> {
        Ok(self.threads()?.broadcast(|thread| work(thread.index())))
    }

    /// Shares `items`: every thread calls `work(number, items)` once and draws from the iterator, in
    /// which each item comes to one thread. Returns each call's result. In a pool of one thread, or
    /// where the iterator's size hint is at most one item, even none, the calling thread alone calls
    /// `work`, as number 0.
    ///
    /// ```
    /// # use tiergraph_core::ThreadPool;
    /// let threads = ThreadPool::new(4);
    /// let sums = threads.share(1..=100, |_, items| items.sum::<u64>())?;
    /// assert!(sums.len() == 4 && sums.iter().sum::<u64>() == 5050);
    /// assert_eq!(threads.share(0..1, |_, items| items.count())?, [1]);
    /// # Ok::<(), tiergraph_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ThreadPool::each`].
    pub fn share<I, R: Send>(
        &self,
        items: impl Iterator<Item = I> + Send,
        work: impl Fn(usize, &mut dyn Iterator<Item = I>) -> R + Sync,
    ) -> Result<Vec<R>> {
        let single = self.size == 1 || items.size_hint().1.is_some_and(|most| most <= 1);
        let items = Mutex::new(items);
        let take = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
        let one = |number| work(number, &mut std::iter::from_fn(take));
        if single { Ok(vec![one(0)]) } else { self.each(one) }
    }

    fn threads(&self) -> Result<&rayon::ThreadPool> {
        let started = match self.started.get() {
            Some(started) => started,
            None => {
                let started = Started { threads: start(self.size)?, process: process::id() };
                self.started.get_or_init(|| started)
            }
        };
        if started.process != process::id() {
            let known = |process| format!("process {process}");
            return Err(Error::new(ErrorKind::Input, "run over a graph in a forked process")
                .expected(format!("{}, which has run over it", known(started.process)))
                .got(known(process::id()))
                .hint("open the graph in the process that uses it"));
        }
        Ok(&started.threads)
    }
}

fn start(size: usize) -> Result<rayon::ThreadPool> {
    ThreadPoolBuilder::new()
        .num_threads(size)
        .thread_name(|number| format!("tiergraph-{number}"))
        .build()
        .map_err(|e| Error::io("start", format!("{size} threads"), std::io::Error::other(e)))
        .map_err(|e| e.hint(threads::MORE))
}
