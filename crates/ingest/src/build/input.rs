//! The edges of a build, read pass after pass: from the source, or from a spool of an earlier pass.
//!
//! The first pass writes a spool unless the source is as good as one: to read pairs of ids again is
//! cheaper than to write them, to parse or to generate them again is not. A thread of its own asks
//! the source for the next batch while the pass works on the last.

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Progress, Result, threads};

use super::scratch::Scratch;
use super::spool::{Spool, SpoolWriter};
use crate::source::{EdgeBatch, EdgeSource};

/// The edges of a build: the source, and the spool of what a pass kept of them.
pub(super) struct Input<'s> {
    source: &'s mut dyn EdgeSource,
    pub(super) weighted: bool,
    scratch: &'s Scratch,
    progress: &'s dyn Progress,
    piece_edges: usize,
    spool: Option<Spool>,
    started: bool,
}

impl<'s> Input<'s> {
    /// The edges of `source`, with their weights if `weighted`. Spools are temporary files of `scratch`,
    /// whose bytes are reported to `progress`.
    pub(super) fn new(
        source: &'s mut dyn EdgeSource,
        weighted: bool,
        scratch: &'s Scratch,
        progress: &'s dyn Progress,
        piece_edges: usize,
    ) -> Self {
        Self { source, weighted, scratch, progress, piece_edges, spool: None, started: false }
    }

    /// The source that the edges come from.
    pub(super) fn source(&mut self) -> &mut dyn EdgeSource {
        self.source
    }

    /// Whether the next pass reads a spool that an earlier one wrote.
    pub(super) fn is_spooled(&self) -> bool {
        self.spool.is_some()
    }

    /// Calls `visit` with all edges, a batch at a time. With `keep`, the next pass reads what `visit`
    /// makes of the batches: they are spooled, unless the source can be read again as cheaply.
    pub(super) fn pass(
        &mut self,
        keep: bool,
        mut visit: impl FnMut(&mut EdgeBatch) -> Result<()>,
    ) -> Result<()> {
        let keep = keep && (self.spool.is_some() || !self.source.reads_again());
        let create = || SpoolWriter::new(self.scratch.file()?, self.piece_edges, self.weighted);
        let to = keep.then(create).transpose()?;
        let (scratch, progress) = (self.scratch, self.progress);
        let visit = |batch: &mut EdgeBatch| {
            scratch.show(progress);
            visit(batch)
        };
        let kept = match &self.spool {
            Some(spool) => {
                let mut reader = spool.read()?;
                visit_all(to, visit, |batch| reader.next(batch))?
            }
            None => {
                if self.started {
                    self.source.restart()?;
                }
                self.started = true;
                from_source(self.source, to, visit)?
            }
        };
        if kept.is_some() {
            self.spool = kept;
        }
        Ok(())
    }
}

/// Visits the batches that `next` fills until it returns false, and writes them to the spool `to`.
fn visit_all(
    mut to: Option<SpoolWriter>,
    mut visit: impl FnMut(&mut EdgeBatch) -> Result<()>,
    mut next: impl FnMut(&mut EdgeBatch) -> Result<bool>,
) -> Result<Option<Spool>> {
    let mut batch = EdgeBatch::default();
    while next(&mut batch)? {
        visit(&mut batch)?;
        if let Some(writer) = &mut to {
            writer.push(&batch)?;
        }
    }
    to.map(SpoolWriter::finish).transpose()
}

/// Calls `visit` with all edges of a source, which a thread of its own reads.
pub(crate) fn visit_source(
    source: &mut dyn EdgeSource,
    visit: impl FnMut(&mut EdgeBatch) -> Result<()>,
) -> Result<()> {
    from_source(source, None, visit).map(drop)
}

/// Makes a pass over the source, which a thread of its own reads, from where it is.
fn from_source(
    source: &mut dyn EdgeSource,
    to: Option<SpoolWriter>,
    visit: impl FnMut(&mut EdgeBatch) -> Result<()>,
) -> Result<Option<Spool>> {
    std::thread::scope(|scope| {
        // One batch waits between the two threads, so that neither waits for the other's wake-up.
        let (send, fetched) = bounded::<Result<EdgeBatch>>(1);
        let (spare, spares) = bounded(2);
        threads::start_in(scope, "fetch", move || fetch(source, &send, &spares))?;
        visit_all(to, visit, |batch| {
            let Ok(next) = fetched.recv() else { return Ok(false) };
            let _ = spare.try_send(std::mem::replace(batch, next?));
            Ok(true)
        })
    })
}

fn fetch(
    source: &mut dyn EdgeSource,
    send: &Sender<Result<EdgeBatch>>,
    spares: &Receiver<EdgeBatch>,
) {
    loop {
        let mut batch = spares.try_recv().unwrap_or_default();
        let fetched = match source.next_batch(&mut batch) {
            Ok(false) => return,
            Ok(true) => Ok(batch),
            Err(error) => Err(error),
        };
        let failed = fetched.is_err();
        if send.send(fetched).is_err() || failed {
            return;
        }
    }
}
