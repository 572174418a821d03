//! Threads that stay: passes and loops over vertices are done by the same ones.
//!
//! A thread that is started for a loop begins where its parent runs, and waits for it: milliseconds,
//! of passes that take tens.

use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};
use tiergraph_core::{Error, Result};

/// Threads, started when they are first needed.
#[derive(Debug)]
pub struct Team {
    size: usize,
    threads: OnceLock<ThreadPool>,
}

impl Team {
    /// Of `size` threads.
    pub fn new(size: usize) -> Self {
        Self { size, threads: OnceLock::new() }
    }

    /// How many threads.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Calls `work(number)` on every thread, and gives what each made.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn each<R: Send>(&self, work: impl Fn(usize) -> R + Sync) -> Result<Vec<R>> {
        Ok(self.threads()?.broadcast(|thread| work(thread.index())))
    }

    /// Calls `work(number, items)` on every thread, each of which takes an item when it asks for one;
    /// gives what each made. A single item is not worth waking them.
    ///
    /// ```
    /// # use tiergraph_graph::Team;
    /// let team = Team::new(4);
    /// let sums = team.share(1..=100, |_, items| items.sum::<u64>())?;
    /// assert!(sums.len() == 4 && sums.iter().sum::<u64>() == 5050);
    /// assert_eq!(team.share(0..1, |_, items| items.count())?, [1]);
    /// # Ok::<(), tiergraph_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Team::each`].
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

    fn threads(&self) -> Result<&ThreadPool> {
        if let Some(threads) = self.threads.get() {
            return Ok(threads);
        }
        let started = ThreadPoolBuilder::new()
            .num_threads(self.size)
            .thread_name(|number| format!("tiergraph-{number}"))
            .build()
            .map_err(|e| Error::io("start", "the threads of passes", std::io::Error::other(e)))?;
        Ok(self.threads.get_or_init(|| started))
    }
}
