//! Edges that a caller has in memory: arrays, or batches pushed from another thread.
//!
//! Python's arrays, iterators and Parquet readers come through [`channel`]: the caller pushes, the
//! build pulls, and the bound of the channel keeps the faster side waiting.

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Error, ErrorKind, Result};

use super::{EdgeBatch, EdgeSource, Endpoints, SizeHint};
use crate::Names;

/// A description of the edges that a caller will push.
#[derive(Clone, Default)]
pub struct MemorySpec {
    /// Where the edges come from, for provenance and messages.
    pub name: String,
    /// The size of the input, as far as it is known.
    pub size: SizeHint,
    /// Whether the edges are directed, if the caller knows.
    pub directed: Option<bool>,
    /// Whether every batch carries weights.
    pub weighted: bool,
    /// Ids that the input lists, isolated vertices included; `None` if it lists none.
    pub vertices: Option<Vec<u64>>,
    /// The most bytes that the caller and the channel hold.
    pub held_bytes: u64,
    /// The most bytes that they would hold in a build with any amount of memory.
    pub held_bytes_at_most: u64,
    /// Notes for the user: what the caller noticed about the input, or decided.
    pub notes: Vec<String>,
    /// The names of the vertices, where ids are their numbers.
    pub names: Option<Names>,
}

impl MemorySpec {
    /// Checks that the columns of a batch fit together and its weights can be used.
    fn check(&self, batch: &EdgeBatch, before: u64) -> Result<()> {
        let refuse = |expected: String, got: String| {
            let op = format!("use the batch after edge {before} of");
            let e = Error::new(ErrorKind::Input, op).object(&self.name);
            Err(e.expected(expected).got(got))
        };
        let (src, dst) = match &batch.ends {
            Endpoints::U32 { src, dst } => (src.len(), dst.len()),
            Endpoints::U64 { src, dst } => (src.len(), dst.len()),
        };
        if src != dst {
            return refuse(format!("{src} targets"), format!("{dst}"));
        }
        match (&batch.weights, self.weighted) {
            (None, false) => Ok(()),
            (None, true) => refuse("weights".into(), "none".into()),
            (Some(_), false) => refuse("no weights".into(), "weights".into()),
            (Some(weights), true) if weights.len() != src => {
                refuse(format!("{src} weights"), format!("{}", weights.len()))
            }
            (Some(weights), true) => {
                match weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
                    Some(bad) => refuse("weights of 0 or more".into(), format!("`{bad}`")),
                    None => Ok(()),
                }
            }
        }
    }
}

/// The methods of a source that answer from its `spec`, without reading edges.
macro_rules! as_the_caller_said {
    () => {
        fn describe(&self) -> String {
            self.spec.name.clone()
        }

        fn size_hint(&self) -> SizeHint {
            self.spec.size
        }

        fn directed(&self) -> Option<bool> {
            self.spec.directed
        }

        fn weighted(&self) -> bool {
            self.spec.weighted
        }

        fn vertices(&mut self) -> Result<Option<Vec<u64>>> {
            Ok(self.spec.vertices.clone())
        }

        fn names(&self) -> Option<Names> {
            self.spec.names.clone()
        }

        fn notes(&self) -> Vec<String> {
            self.spec.notes.clone()
        }
    };
}

enum Message {
    Batch(EdgeBatch),
    Failed(Error),
    End,
}

/// The sending end of [`channel`]. If it is dropped without [`finish`](Self::finish), the source returns
/// an error, so that a caller that dies does not leave half a graph.
pub struct BatchSender {
    messages: Sender<Message>,
    spares: Receiver<EdgeBatch>,
    spec: MemorySpec,
    sent: u64,
}

/// The source at the receiving end of [`channel`].
pub struct MemorySource {
    messages: Receiver<Message>,
    spares: Sender<EdgeBatch>,
    spec: MemorySpec,
    ended: bool,
}

/// Makes a sender of batches and a source that hands them out; up to `depth` batches wait between.
pub fn channel(spec: MemorySpec, depth: usize) -> (BatchSender, MemorySource) {
    let (send, messages) = bounded(depth.max(1));
    let (spare, spares) = bounded(depth.max(1));
    let sender = BatchSender { messages: send, spares, spec: spec.clone(), sent: 0 };
    (sender, MemorySource { messages, spares: spare, spec, ended: false })
}

impl BatchSender {
    /// An empty batch, with the memory of one that the source is done with, if there is one.
    pub fn spare(&self) -> EdgeBatch {
        let mut batch = self.spares.try_recv().unwrap_or_default();
        batch.clear();
        batch
    }

    /// Pushes a batch; waits while the channel is full.
    ///
    /// # Errors
    /// An input error for columns of different lengths and for weights that are missing, not
    /// expected, negative or not finite; an interrupted error once the source is gone.
    pub fn send(&mut self, batch: EdgeBatch) -> Result<()> {
        self.spec.check(&batch, self.sent)?;
        self.sent += batch.len() as u64;
        self.push(Message::Batch(batch))
    }

    /// Ends the stream with the caller's error, which the source then returns.
    ///
    /// # Errors
    /// An interrupted error once the source is gone.
    pub fn fail(self, error: Error) -> Result<()> {
        self.push(Message::Failed(error))
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// An interrupted error once the source is gone.
    pub fn finish(self) -> Result<()> {
        self.push(Message::End)
    }

    fn push(&self, message: Message) -> Result<()> {
        self.messages.send(message).map_err(|_| {
            Error::new(ErrorKind::Interrupted, "push edges of")
                .object(&self.spec.name)
                .got("the build that read them has ended")
        })
    }
}

impl EdgeSource for MemorySource {
    as_the_caller_said!();

    fn can_restart(&self) -> bool {
        false
    }

    fn held_bytes(&self) -> u64 {
        self.spec.held_bytes
    }

    fn held_bytes_at_most(&self) -> u64 {
        self.spec.held_bytes_at_most
    }

    fn restart(&mut self) -> Result<()> {
        Err(Error::new(ErrorKind::Input, "read again")
            .object(&self.spec.name)
            .expected("a file or arrays")
            .got("a stream that can be read once"))
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        while !self.ended {
            match self.messages.recv() {
                Ok(Message::Batch(next)) => {
                    // A full channel means that the sender has spares enough.
                    let _ = self.spares.try_send(std::mem::replace(batch, next));
                    if !batch.is_empty() {
                        return Ok(true);
                    }
                }
                Ok(Message::End) => self.ended = true,
                Ok(Message::Failed(error)) => return Err(error),
                Err(_) => {
                    return Err(Error::new(ErrorKind::Input, "read all edges of")
                        .object(&self.spec.name)
                        .got("the caller stopped before the end"));
                }
            }
        }
        Ok(false)
    }
}

/// A source of batches that are all in memory, for small graphs and for tests.
pub struct ArraySource {
    batches: Vec<EdgeBatch>,
    spec: MemorySpec,
    next: usize,
}

impl ArraySource {
    /// A source of the edges in `batches`.
    ///
    /// # Errors
    /// As [`BatchSender::send`].
    pub fn new(mut spec: MemorySpec, batches: Vec<EdgeBatch>) -> Result<Self> {
        let mut edges = 0;
        for batch in &batches {
            spec.check(batch, edges)?;
            edges += batch.len() as u64;
        }
        spec.size.edges = Some(edges);
        Ok(Self { batches, spec, next: 0 })
    }
}

impl EdgeSource for ArraySource {
    as_the_caller_said!();

    fn reads_again(&self) -> bool {
        true
    }

    fn restart(&mut self) -> Result<()> {
        self.next = 0;
        Ok(())
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        while let Some(next) = self.batches.get(self.next) {
            self.next += 1;
            batch.clone_from(next);
            if !batch.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
