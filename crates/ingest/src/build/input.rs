//! The edges of a build, pass after pass: from the source, or from a spool of the first pass.
//!
//! The first pass writes a spool unless the source turns out to be faster than a spool can be: to
//! read pairs of ids again is cheaper than to write them, to parse or to generate them again is not.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tiergraph_core::Result;

use super::spool::{Spool, SpoolReader, SpoolWriter};
use crate::source::{EdgeBatch, EdgeSource};

/// Edges after which a source's speed is known.
const TRIAL_EDGES: u64 = 32 << 20;
/// Edges a second from which a source is read again instead.
const FAST_SOURCE: f64 = 150e6;

/// The source, and what is known of its edges already.
pub(super) struct Input<'s> {
    source: &'s mut dyn EdgeSource,
    pub(super) weighted: bool,
    dir: PathBuf,
    piece_edges: usize,
    spool: Option<Spool>,
    started: bool,
    passes: u32,
}

/// One pass over the edges.
pub(super) struct Pass<'i> {
    from: From<'i>,
    to: Option<SpoolWriter>,
    waited: Duration,
    edges: u64,
    can_restart: bool,
}

enum From<'i> {
    Source(&'i mut dyn EdgeSource),
    Spool(SpoolReader),
}

impl<'s> Input<'s> {
    /// The edges of `source`, with their weights if they are asked for. Spools go to `dir`.
    pub(super) fn new(
        source: &'s mut dyn EdgeSource,
        weighted: bool,
        dir: PathBuf,
        piece_edges: usize,
    ) -> Self {
        Self { source, weighted, dir, piece_edges, spool: None, started: false, passes: 0 }
    }

    /// The source.
    pub(super) fn source(&mut self) -> &mut dyn EdgeSource {
        self.source
    }

    /// Whether the next pass reads what an earlier one wrote.
    pub(super) fn is_spooled(&self) -> bool {
        self.spool.is_some()
    }

    /// Starts a pass. With `keep`, what its user gives to [`Pass::keep`] is what the next pass
    /// reads.
    pub(super) fn pass(&mut self, keep: bool) -> Result<Pass<'_>> {
        self.passes += 1;
        let to = if keep {
            let path = self.dir.join(format!("edges-{}", self.passes));
            Some(SpoolWriter::create(&path, self.piece_edges, self.weighted)?)
        } else {
            None
        };
        let can_restart = self.spool.is_none() && self.source.can_restart();
        let from = match &self.spool {
            Some(spool) => From::Spool(spool.read()?),
            None => {
                if self.started {
                    self.source.restart()?;
                }
                self.started = true;
                From::Source(self.source)
            }
        };
        Ok(Pass { from, to, waited: Duration::ZERO, edges: 0, can_restart })
    }

    /// Ends a pass: `kept` is what its [`Pass::finish`] gave.
    pub(super) fn keep(&mut self, kept: Option<Spool>) {
        if kept.is_some() {
            self.spool = kept;
        }
    }
}

impl Pass<'_> {
    /// The next edges; false at the end.
    pub(super) fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        match &mut self.from {
            From::Spool(reader) => reader.next(batch),
            From::Source(source) => {
                let begin = Instant::now();
                let more = source.next_batch(batch)?;
                self.waited += begin.elapsed();
                Ok(more)
            }
        }
    }

    /// Writes edges aside for the next pass, if it is to read them from there.
    pub(super) fn keep(&mut self, batch: &EdgeBatch) -> Result<()> {
        let Some(writer) = &mut self.to else { return Ok(()) };
        self.edges += batch.len() as u64;
        let fast = self.edges as f64 > FAST_SOURCE * self.waited.as_secs_f64();
        if self.can_restart && self.edges > TRIAL_EDGES && fast {
            self.to = None;
            return Ok(());
        }
        self.can_restart &= self.edges <= TRIAL_EDGES;
        writer.push(batch)
    }

    /// What was kept.
    pub(super) fn finish(self) -> Result<Option<Spool>> {
        self.to.map(SpoolWriter::finish).transpose()
    }
}
