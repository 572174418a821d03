//! Several files that have the edges of one graph, read one after the other.

use std::path::PathBuf;

use tiergraph_core::{Error, ErrorKind, Result};

use super::{EdgeBatch, EdgeSource, OpenOptions, SizeHint, open};
use crate::Names;

/// Files that a message names; of others it says how many they are.
const NAMED: usize = 3;

/// Opens one input as [`open`] does, or several of the same kind, whose edges come in their order.
///
/// # Errors
/// As [`open`]; an input error for files that do not agree on weights or on whether edges have a direction,
/// and for several files that each list their vertices.
pub fn open_all(paths: &[PathBuf], options: &OpenOptions) -> Result<Box<dyn EdgeSource>> {
    match paths {
        [path] => open(path, options),
        paths => Ok(Box::new(ManySource::open(paths, options)?)),
    }
}

struct ManySource {
    sources: Vec<Box<dyn EdgeSource>>,
    current: usize,
}

impl ManySource {
    fn open(paths: &[PathBuf], options: &OpenOptions) -> Result<Self> {
        let mut sources: Vec<Box<dyn EdgeSource>> = Vec::with_capacity(paths.len());
        for path in paths {
            let mut source = open(path, options)?;
            let refuse = |expected: String, got: &str| {
                let error = Error::new(ErrorKind::Input, "read several files as one graph");
                Err(error.object(path.display()).expected(expected).got(got))
            };
            if source.size_hint().vertices.is_some() || source.vertices()?.is_some() {
                let expected = "files of edges alone";
                return refuse(expected.into(), "one that says what its vertices are");
            }
            if let Some(first) = sources.first() {
                let name = first.describe();
                match (first.weighted(), source.weighted()) {
                    (true, false) => return refuse(format!("weights, as `{name}` has"), "none"),
                    (false, true) => {
                        return refuse(format!("no weights, as `{name}`"), "weights");
                    }
                    _ => {}
                }
                if first.directed() != source.directed() {
                    let expected = format!("edges of the kind that `{name}` has");
                    return refuse(expected, "edges of another kind, directed or undirected");
                }
            }
            sources.push(source);
        }
        if sources.is_empty() {
            return Err(Error::new(ErrorKind::Input, "read edges").expected("a file").got("none"));
        }
        Ok(Self { sources, current: 0 })
    }

    fn most(&self, of: impl Fn(&dyn EdgeSource) -> u64) -> u64 {
        self.sources.iter().map(|source| of(source.as_ref())).max().unwrap_or(0)
    }

    fn sum(&self, of: impl Fn(SizeHint) -> Option<u64>) -> Option<u64> {
        self.sources.iter().map(|source| of(source.size_hint())).sum()
    }
}

impl EdgeSource for ManySource {
    fn describe(&self) -> String {
        let names: Vec<String> =
            self.sources.iter().take(NAMED).map(|source| source.describe()).collect();
        match self.sources.len() - names.len() {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let (edges, bytes) = (self.sum(|size| size.edges), self.sum(|size| size.bytes));
        SizeHint { edges, vertices: None, bytes }
    }

    fn directed(&self) -> Option<bool> {
        self.sources[0].directed()
    }

    fn weighted(&self) -> bool {
        self.sources[0].weighted()
    }

    fn can_restart(&self) -> bool {
        self.sources.iter().all(|source| source.can_restart())
    }

    fn reads_again(&self) -> bool {
        self.sources.iter().all(|source| source.reads_again())
    }

    fn keep_within(&mut self, memory: u64) {
        self.sources.iter_mut().for_each(|source| source.keep_within(memory));
    }

    fn held_bytes(&self) -> u64 {
        self.most(|source| source.held_bytes())
    }

    fn held_bytes_at_most(&self) -> u64 {
        self.most(|source| source.held_bytes_at_most())
    }

    fn notes(&self) -> Vec<String> {
        // Those of the others say the same of their own names.
        self.sources[0].notes()
    }

    fn names(&self) -> Option<Names> {
        self.sources[0].names()
    }

    fn restart(&mut self) -> Result<()> {
        self.current = 0;
        self.sources.iter_mut().try_for_each(|source| source.restart())
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        while let Some(source) = self.sources.get_mut(self.current) {
            if source.next_batch(batch)? {
                return Ok(true);
            }
            // Its thread and buffers are done with.
            if source.can_restart() {
                source.restart()?;
            }
            self.current += 1;
        }
        Ok(false)
    }
}
