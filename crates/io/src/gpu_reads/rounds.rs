//! Rows of many lists, read by rounds: the host starts a kernel that submits when queue pairs are free,
//! sees by the rings when all completions have come, has a copy engine bring the rows to the GPU, and then
//! starts the kernel that takes them. Neither kernel waits for a drive, nor for the link, so training that
//! goes on meanwhile has all multiprocessors of the GPU but for moments.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Instant;

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{RowRequests, RowTargets, Taking};
use tiergraph_gpu::{Device, DeviceBuf, Event, Stream};

use super::arrivals::Arrivals;
use super::queues::PairSet;
use super::{GpuReads, ReadStreams, RowLists};

/// Rounds whose rows are in device memory together: one is copied there, and two may wait for multiprocessors.
/// Measured: bench/runs/2026-11-28-h200-16-core-128gib/gpu_landings.txt.
const LANDINGS: usize = 3;

/// Reads by a GPU of the rows that lists name, each list in rounds of as many rows as queue pairs have room
/// for. A part of a list begins and ends with a [round](Self::round), or ends with the list.
#[derive(Debug)]
pub struct RoundReads {
    // Dropped first: it ends the kernels that use what is behind it.
    reads: GpuReads,
    streams: ReadStreams,
    /// The stream by which the host asks how reads ended, which waits for nothing else.
    checking: Stream,
    /// The stream that brings rows to the GPU, while those of the round before are taken.
    copying: Stream,
    sets: Vec<Set>,
    /// Where rows come to from the staging memory, in turns: a round's are copied while those of the rounds
    /// before are taken, so that fewer are needed than there are rounds in flight.
    landings: Vec<Landing>,
    /// How many rounds have come to the landings so far.
    landed: usize,
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
    /// How many commands were submitted; `None` before that is known.
    commands: Option<u32>,
    /// How many completions have come, and when the last did.
    come: u32,
    since: Instant,
    /// Whether its rows are being taken, or were.
    is_taken: bool,
}

/// What belongs to a set of queue pairs, beside the pairs.
#[derive(Debug)]
struct Set {
    round: Option<Round>,
    arrivals: Arrivals,
    /// Happens when the rows of the last round were taken.
    taken: Event,
}

/// Device memory for the rows of a round, as they came to the staging memory.
#[derive(Debug)]
struct Landing {
    rows: DeviceBuf<u8>,
    /// Happens when the rows of the last round here have come.
    copied: Event,
    /// Happens when they were taken.
    taken: Event,
}

impl Landing {
    fn new(device: &Device, bytes: usize) -> Result<Self> {
        let rows = DeviceBuf::new(device, bytes)?;
        Ok(Self { rows, copied: Event::new(device)?, taken: Event::new(device)? })
    }
}

impl RoundReads {
    /// Reads by `reads`, of which no batch is in flight, whose kernels run on `streams`.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn new(reads: GpuReads, streams: ReadStreams) -> Result<Self> {
        let (device, queues) = (streams.completing.device(), &reads.queues);
        let set = |pairs: &PairSet| {
            Ok(Set {
                round: None,
                arrivals: Arrivals::new(&pairs.completions, queues.entries_log2),
                taken: Event::new(device)?,
            })
        };
        let landings = (0..queues.sets.len().min(LANDINGS))
            .map(|_| Landing::new(device, queues.set_bytes))
            .collect::<Result<_>>()?;
        Ok(Self {
            checking: Stream::new(device)?,
            copying: Stream::new(device)?,
            sets: queues.sets.iter().map(set).collect::<Result<_>>()?,
            landings,
            landed: 0,
            reads,
            streams,
            waiting: VecDeque::new(),
            open: HashMap::new(),
            tickets: 0,
        })
    }

    /// The most rows of a round.
    pub fn round(&self) -> usize {
        self.reads.capacity()
    }

    fn try_proceed(&mut self) -> Result<()> {
        for number in 0..self.sets.len() {
            if let Some(mut round) = self.sets[number].round.take() {
                match self.has_round_ended(number, &mut round)? {
                    true => {
                        self.open.entry(round.ticket).and_modify(|rounds| *rounds -= 1);
                    }
                    false => self.sets[number].round = Some(round),
                }
            }
            if self.sets[number].round.is_none()
                && let Some(Waiting { ticket, requests, first, to }) = self.waiting.pop_front()
            {
                self.reads.check_unbroken()?;
                self.reads.submit_by(number, &self.streams.submitting, requests, first)?;
                let (commands, since) = (None, Instant::now());
                let round = Round { ticket, to, commands, come: 0, since, is_taken: false };
                self.sets[number].round = Some(round);
            }
        }
        Ok(())
    }

    /// Goes on with a round of set number `number`; whether all its rows were taken.
    fn has_round_ended(&mut self, number: usize, round: &mut Round) -> Result<bool> {
        let (set, completing) = (&mut self.sets[number], &self.streams.completing);
        if round.is_taken {
            return set.taken.happened();
        }
        if round.commands.is_none() && self.reads.batches[number].submitted.happened()? {
            round.commands = Some(self.reads.queues.told(number));
        }
        let Some(commands) = round.commands else { return Ok(false) };
        let come = set.arrivals.count();
        if come > 0 {
            (round.come, round.since) = (round.come + come, Instant::now());
        }
        if round.come >= commands {
            let next = self.landed % self.landings.len();
            let landing = &mut self.landings[next];
            self.landed += 1;
            self.copying.wait_for(&landing.taken)?;
            self.reads.queues.copy_staging(&self.copying, number, commands, &landing.rows)?;
            landing.copied.record(&self.copying)?;
            completing.wait_for(&landing.copied)?;
            let taking = Taking::Copied(landing.rows.ptr());
            self.reads.complete_by(number, completing, round.to, taking)?;
            landing.taken.record(completing)?;
            set.taken.record(completing)?;
            round.is_taken = true;
        } else if round.since.elapsed() > self.reads.options.timeout {
            self.reads.complete_by(number, completing, round.to, Taking::Now)?;
            completing.synchronize()?;
            self.reads.check(&self.checking)?;
            // They came at the last moment, and are to be counted.
            set.arrivals.count();
            return Ok(true);
        }
        Ok(false)
    }
}

impl RowLists for RoundReads {
    fn stream(&self) -> &Stream {
        &self.streams.completing
    }

    fn host_bytes(&self) -> u64 {
        self.reads.host_bytes()
    }

    fn device_bytes(&self) -> u64 {
        self.landings.iter().map(|landing| landing.rows.bytes() as u64).sum()
    }

    fn bytes_asked(&self) -> Result<u64> {
        self.reads.bytes_asked(&self.checking)
    }

    fn begin(
        &mut self,
        ready: &Event,
        requests: RowRequests,
        of: Range<usize>,
        to: RowTargets,
    ) -> Result<u64> {
        self.tickets += 1;
        let ticket = self.tickets;
        self.streams.submitting.wait_for(ready)?;
        self.streams.completing.wait_for(ready)?;
        let firsts = of.step_by(self.round());
        self.open.insert(ticket, firsts.len());
        let waiting = |first| Waiting { ticket, requests, first: first as u32, to };
        self.waiting.extend(firsts.map(waiting));
        self.proceed()?;
        Ok(ticket)
    }

    fn has_ended(&self, ticket: u64) -> bool {
        self.open.get(&ticket).is_none_or(|&rounds| rounds == 0)
    }

    fn is_reading(&self) -> bool {
        self.sets.iter().any(|set| set.round.is_some())
    }

    fn end(&mut self, ticket: u64) -> Result<()> {
        self.open.remove(&ticket);
        self.reads.check(&self.checking)
    }

    fn give_up(&mut self, ticket: u64) {
        let before = self.waiting.len();
        self.waiting.retain(|round| round.ticket != ticket);
        let dropped = before - self.waiting.len();
        self.open.entry(ticket).and_modify(|rounds| *rounds -= dropped);
    }

    fn proceed(&mut self) -> Result<()> {
        let proceeded = self.try_proceed();
        if proceeded.is_err() {
            // Nothing is waited for any more; what kernels access stays until they have ended.
            let _ = self.copying.synchronize();
            let _ = self.streams.completing.synchronize();
            self.waiting.clear();
            self.sets.iter_mut().for_each(|set| set.round = None);
            self.open.clear();
        }
        proceeded
    }
}

impl Drop for RoundReads {
    /// Ends the kernels before what they use.
    fn drop(&mut self) {
        self.reads.stop().stop();
        // After an error of the driver none of them runs any more.
        let _ = self.copying.synchronize();
        let _ = self.streams.completing.synchronize();
    }
}
