//! Turns: what threads prepare apart goes to one file in its order.
//!
//! Thread t has the pieces t, t + n, …. No thread waits to write: it leaves the piece that it has prepared, and
//! the thread that finds the file free writes all whose turn it is. A piece that is too large to be left is
//! written in its turn, part by part.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tiergraph_core::{Error, ErrorKind, Result, threads};

/// What one thread prepares, and how it is written.
pub(crate) trait Prepare: Send {
    /// The type of a piece that is ready to be written.
    type Ready: Send;
    /// The file that all pieces are written to.
    type Sink: Send;

    /// Writes a piece; pieces come in order.
    fn write(&mut self, sink: &mut Self::Sink, ready: Self::Ready) -> Result<()>;
}

/// The order in which threads write pieces.
pub(crate) struct Turns<P: Prepare> {
    state: Mutex<Turn<P>>,
    changed: Condvar,
    /// The number of pieces that may be ready before their turn.
    ahead: usize,
}

struct Turn<P: Prepare> {
    /// The piece to be written next.
    next: usize,
    ready: BTreeMap<usize, P::Ready>,
    /// The file; `None` while a thread is writing.
    sink: Option<P::Sink>,
    failed: Option<Error>,
    over: bool,
}

impl<P: Prepare> Turns<P> {
    fn lock(&self) -> MutexGuard<'_, Turn<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `holds` is true; `None` when a thread has failed.
    fn wait(&self, holds: impl Fn(&Turn<P>) -> bool) -> Option<MutexGuard<'_, Turn<P>>> {
        let turn = self
            .changed
            .wait_while(self.lock(), |turn| !turn.over && !holds(turn))
            .unwrap_or_else(PoisonError::into_inner);
        (!turn.over).then_some(turn)
    }

    fn fail(&self, error: Error) {
        let mut turn = self.lock();
        turn.over = true;
        turn.failed.get_or_insert(error);
        self.changed.notify_all();
    }

    /// Leaves a piece that is ready, and writes if no thread does; false when a thread has failed.
    pub(crate) fn leave(&self, piece: usize, ready: P::Ready, preparer: &mut P) -> Result<bool> {
        let room = |turn: &Turn<P>| turn.next == piece || turn.ready.len() < self.ahead;
        let Some(mut turn) = self.wait(room) else { return Ok(false) };
        turn.ready.insert(piece, ready);
        self.write(turn, preparer).map(|()| true)
    }

    /// Writes the pieces whose turn it is, unless another thread is writing.
    fn write<'t>(&'t self, mut turn: MutexGuard<'t, Turn<P>>, preparer: &mut P) -> Result<()> {
        loop {
            let next = turn.next;
            let Some(mut sink) = turn.sink.take() else { return Ok(()) };
            let Some(ready) = turn.ready.remove(&next) else {
                turn.sink = Some(sink);
                return Ok(());
            };
            drop(turn);
            preparer.write(&mut sink, ready)?;
            turn = self.written(sink);
        }
    }

    /// Waits until it is a piece's turn, and takes the file; `None` when a thread has failed.
    pub(crate) fn take(&self, piece: usize) -> Option<P::Sink> {
        let its_turn = |turn: &Turn<P>| turn.next == piece && turn.sink.is_some();
        self.wait(its_turn)?.sink.take()
    }

    /// Gives the file back after `take`, all of the piece being written, and writes those behind it.
    pub(crate) fn give_back(&self, sink: P::Sink, preparer: &mut P) -> Result<()> {
        self.write(self.written(sink), preparer)
    }

    /// Gives the file back after a piece was written.
    fn written(&self, sink: P::Sink) -> MutexGuard<'_, Turn<P>> {
        let mut turn = self.lock();
        turn.sink = Some(sink);
        turn.next += 1;
        self.changed.notify_all();
        turn
    }
}

/// Runs `work(thread, preparer, turns)` on a thread for each of `preparers`, into `sink`.
pub(crate) fn in_turns<P: Prepare>(
    preparers: Vec<P>,
    sink: P::Sink,
    work: impl Fn(usize, &mut P, &Turns<P>) -> Result<()> + Sync,
) -> Result<P::Sink> {
    let (ready, sink) = (BTreeMap::new(), Some(sink));
    let state = Mutex::new(Turn { next: 0, ready, sink, failed: None, over: false });
    let turns = Turns::<P> { state, changed: Condvar::new(), ahead: preparers.len() };
    std::thread::scope(|scope| {
        for (thread, mut preparer) in preparers.into_iter().enumerate() {
            let (turns, work) = (&turns, &work);
            let body = move || {
                // A panic must not leave the others waiting.
                let guard = Unfinished(turns);
                if let Err(error) = work(thread, &mut preparer, turns) {
                    turns.fail(error);
                }
                std::mem::forget(guard);
            };
            if let Err(error) = threads::start_in(scope, "encode", body) {
                turns.fail(error);
                break;
            }
        }
    });
    let turn = turns.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match turn.failed {
        Some(error) => Err(error),
        None => turn.sink.ok_or_else(ended),
    }
}

/// A guard that ends the stage if its thread unwinds.
struct Unfinished<'t, P: Prepare>(&'t Turns<P>);

impl<P: Prepare> Drop for Unfinished<'_, P> {
    fn drop(&mut self) {
        self.0.fail(ended());
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Io, "write the graph").got("a thread that sorts ended")
}
