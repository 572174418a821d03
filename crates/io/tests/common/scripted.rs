//! An engine under another, which does as it was told and writes down what is asked of it.
// Each test crate uses a part of this.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use tiergraph_core::{Error, Result};
use tiergraph_io::{Done, Read, ReadEngine, Wait};

use super::common::PAGE;

/// What becomes of a read.
#[derive(Clone, Copy)]
pub enum Outcome {
    /// So many pages were read.
    Pages(usize),
    /// The system's error.
    Fails(i32),
}
pub use Outcome::{Fails, Pages};

/// An engine that ends one read at a time when it is waited for, as it was told, and writes its calls down.
pub struct Scripted {
    outcomes: VecDeque<Outcome>,
    reads: VecDeque<Read>,
    pub calls: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    pub fn new(outcomes: &[Outcome]) -> Self {
        let outcomes = outcomes.iter().copied().collect();
        Self { outcomes, reads: VecDeque::new(), calls: Arc::default() }
    }
}

impl ReadEngine for Scripted {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        while self.reads.len() < 3
            && let Some(read) = reads.pop_front()
        {
            let pages = [read.offset as usize, read.len, read.at].map(|bytes| bytes / PAGE);
            self.calls
                .lock()
                .unwrap()
                .push(format!("read {} {} to {}", pages[0], pages[1], pages[2]));
            self.reads.push_back(read);
        }
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        self.calls.lock().unwrap().push(format!("{wait:?}"));
        if wait == Wait::No {
            return Ok(());
        }
        if let Some(Read { tag, to, .. }) = self.reads.pop_front() {
            let result = match self.outcomes.pop_front().unwrap() {
                Pages(pages) => Ok(pages * PAGE),
                Fails(code) => {
                    let cause = io::Error::from_raw_os_error(code);
                    Err(Error::io("read", "it", cause))
                }
            };
            done.push(Done { tag, to, result });
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.reads.len()
    }

    fn capacity(&self) -> usize {
        3
    }

    fn name(&self) -> &'static str {
        "scripted"
    }
}

/// The tags and results of the reads that an engine ends at a poll.
pub fn ended(engine: &mut impl ReadEngine, wait: Wait) -> Vec<(u64, Option<usize>)> {
    let mut done = Vec::new();
    engine.poll(&mut done, wait).unwrap();
    done.into_iter().map(|done| (done.tag, done.result.ok().map(|bytes| bytes / PAGE))).collect()
}
