//! Rows of many lists, read by rounds: the host starts a kernel that submits when queue pairs are free, and
//! now and then one that takes what has come. None of them waits for a drive, so a GPU that trains
//! meanwhile has all its multiprocessors but for the copies.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{RowRequests, RowTargets, Until};
use tiergraph_gpu::{Event, Stream};

use super::{GpuReads, ReadStreams};

/// From the submission of a round, or from a look at what has come of it, to the next look, at least:
/// about what drives take to answer.
const LOOK: Duration = Duration::from_micros(100);

/// After so long without a row, kernels may have found something wrong.
const SUSPICIOUS: Duration = Duration::from_millis(50);

/// Reads by a GPU of the rows that lists name, each list in rounds of as many rows as queue pairs have room
/// for. Whoever waits for a list calls [`proceed`](Self::proceed) until it [has ended](Self::has_ended).
#[derive(Debug)]
pub struct RoundReads {
    // Dropped first: it ends the kernels that use what is behind it.
    reads: GpuReads,
    streams: ReadStreams,
    /// The stream by which the host asks how reads ended, which waits for nothing else.
    checking: Stream,
    /// The round by each set of queue pairs.
    rounds: Vec<Option<Round>>,
    waiting: VecDeque<Waiting>,
    /// By ticket, the number of rounds that have not ended.
    open: HashMap<u64, usize>,
    tickets: u64,
}

/// A round that has not begun.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    ticket: u64,
    requests: RowRequests,
    first: u32,
    to: RowTargets,
}

/// A round in flight.
#[derive(Debug)]
struct Round {
    ticket: u64,
    to: RowTargets,
    /// Happens when the last kernel that takes its rows has ended; `None` before the first.
    taken: Option<Event>,
    /// How many reads were left after that one before.
    left: u32,
    /// When it was submitted, or its rows were taken last.
    looked: Instant,
    /// When some of its rows came last.
    since: Instant,
}

impl RoundReads {
    /// Reads by `reads`, of which no batch is in flight, whose kernels run on `streams`.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn new(reads: GpuReads, streams: ReadStreams) -> Result<Self> {
        Ok(Self {
            checking: Stream::new(streams.completing.device())?,
            rounds: reads.batches.iter().map(|_| None).collect(),
            reads,
            streams,
            waiting: VecDeque::new(),
            open: HashMap::new(),
            tickets: 0,
        })
    }

    /// The stream on which rows are taken: what is submitted to it after a list has ended finds them there.
    pub fn stream(&self) -> &Stream {
        &self.streams.completing
    }

    /// Bytes of host memory that kernels and drives share.
    pub fn host_bytes(&self) -> u64 {
        self.reads.host_bytes()
    }

    /// Bytes of blocks that drives were asked for so far.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn bytes_asked(&self) -> Result<u64> {
        self.reads.bytes_asked(&self.checking)
    }

    /// Begins to read the first `count` of the requested rows to `to`, when `ready` has happened; returns
    /// the list's ticket. The list and the rows' places stay until it [has ended](Self::has_ended).
    ///
    /// # Errors
    /// As [`proceed`](Self::proceed).
    pub fn begin(
        &mut self,
        ready: &Event,
        requests: RowRequests,
        count: usize,
        to: RowTargets,
    ) -> Result<u64> {
        self.tickets += 1;
        let ticket = self.tickets;
        self.streams.submitting.wait_for(ready)?;
        self.streams.completing.wait_for(ready)?;
        let firsts = (0..count).step_by(self.reads.capacity());
        self.open.insert(ticket, firsts.len());
        let waiting = |first| Waiting { ticket, requests, first: first as u32, to };
        self.waiting.extend(firsts.map(waiting));
        self.proceed()?;
        Ok(ticket)
    }

    /// Whether all rows of a list were taken, or never will be.
    pub fn has_ended(&self, ticket: u64) -> bool {
        self.open.get(&ticket).is_none_or(|&rounds| rounds == 0)
    }

    /// Whether a round is in flight.
    pub fn is_reading(&self) -> bool {
        self.rounds.iter().any(Option::is_some)
    }

    /// Forgets a list that has ended, and says whether every row came, of it and of the lists before.
    ///
    /// # Errors
    /// As [`GpuReads::check`].
    pub fn end(&mut self, ticket: u64) -> Result<()> {
        self.open.remove(&ticket);
        self.reads.check(&self.checking)
    }

    /// Drops the rounds of a list that have not begun. It has ended when those in flight have.
    pub fn give_up(&mut self, ticket: u64) {
        let before = self.waiting.len();
        self.waiting.retain(|round| round.ticket != ticket);
        let dropped = before - self.waiting.len();
        self.open.entry(ticket).and_modify(|rounds| *rounds -= dropped);
    }

    /// Takes what has come, and submits rounds to queue pairs that are free; waits for nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tiergraph_core::ErrorKind::Io) for a drive that answered not in time, or what was not asked, after which nothing
    /// can be read; any error of the driver.
    pub fn proceed(&mut self) -> Result<()> {
        let proceeded = self.try_proceed();
        if proceeded.is_err() {
            // Nothing is waited for any more; what kernels access stays until they have ended.
            let _ = self.streams.completing.synchronize();
            self.waiting.clear();
            self.rounds.iter_mut().for_each(|round| *round = None);
            self.open.clear();
        }
        proceeded
    }

    fn try_proceed(&mut self) -> Result<()> {
        for set in 0..self.rounds.len() {
            if let Some(round) = self.rounds[set].take() {
                self.rounds[set] = self.look_at(set, round)?;
            }
            if self.rounds[set].is_none()
                && let Some(waiting) = self.waiting.pop_front()
            {
                let Waiting { ticket, requests, first, to } = waiting;
                self.reads.check_unbroken()?;
                self.reads.submit_by(set, &self.streams.submitting, requests, first)?;
                let (taken, now) = (None, Instant::now());
                let round = Round { ticket, to, taken, left: u32::MAX, looked: now, since: now };
                self.rounds[set] = Some(round);
            }
        }
        Ok(())
    }

    /// Takes what has come of a round, if it is time; the round, unless it has ended.
    fn look_at(&mut self, set: usize, mut round: Round) -> Result<Option<Round>> {
        if let Some(taken) = &round.taken {
            if !taken.happened()? {
                return Ok(Some(round));
            }
            let left = self.reads.queues.left(set);
            if left == 0 {
                self.open.entry(round.ticket).and_modify(|rounds| *rounds -= 1);
                return Ok(None);
            }
            if left < round.left {
                (round.left, round.since) = (left, Instant::now());
            } else if round.since.elapsed() > self.reads.options.timeout {
                let completing = &self.streams.completing;
                self.reads.complete_by(set, completing, round.to, Until::Now)?;
                completing.synchronize()?;
                self.reads.check(&self.checking)?;
                // They came at the last moment.
                self.open.entry(round.ticket).and_modify(|rounds| *rounds -= 1);
                return Ok(None);
            } else if round.since.elapsed() > SUSPICIOUS {
                self.reads.check_usable(&self.checking)?;
            }
        }
        if round.looked.elapsed() >= LOOK {
            let until = Until::NoneIsThere { left: self.reads.queues.left_word(set) };
            self.reads.complete_by(set, &self.streams.completing, round.to, until)?;
            let taken = match round.taken.take() {
                Some(taken) => taken,
                None => Event::new(self.checking.device())?,
            };
            taken.record(&self.streams.completing)?;
            (round.taken, round.looked) = (Some(taken), Instant::now());
        }
        Ok(Some(round))
    }
}

impl Drop for RoundReads {
    /// Ends the kernels before what they use.
    fn drop(&mut self) {
        self.reads.stop().stop();
        // After an error of the driver none of them runs any more.
        let _ = self.streams.completing.synchronize();
    }
}
