//! The names that vertices have where their ids are numbers of names, and how they are found.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::flat::{CHUNK_BYTES, Element, read_chunk};
use tiergraph_format::manifest::FileEntry;
use tiergraph_format::names::{ENDS_FILE, PLACES_FILE, TEXT_FILE, hash, number_in};
use tiergraph_mem::Reservation;

use crate::Graph;

/// A view of the names of a graph's vertices, made by [`Graph::names`].
#[derive(Clone, Copy)]
pub struct Names<'g> {
    graph: &'g Graph,
}

/// Texts, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    /// All of them, in UTF-8.
    pub text: Vec<u8>,
    /// Where the first begins, and where each ends, in `text`.
    pub offsets: Vec<i64>,
}

impl Graph {
    /// A view of the vertices' names; `None` where they have none. Nothing is read yet.
    pub fn names(&self) -> Option<Names<'_>> {
        self.manifest().files.contains_key(TEXT_FILE).then_some(Names { graph: self })
    }
}

impl<'g> Names<'g> {
    /// The names of the vertices with ids in `wanted`, which is cut at |V|.
    ///
    /// # Errors
    /// Names that cannot be read, or are damaged; more of them than the memory holds.
    pub fn in_range(self, wanted: Range<u64>) -> Result<Texts> {
        let wanted = wanted.start..wanted.end.min(self.graph.manifest().vertices).max(wanted.start);
        let mut files = Files::new(self.graph);
        let first =
            if wanted.start == 0 { 0 } else { files.number(ENDS_FILE, wanted.start - 1)? };
        let mut offsets = Vec::with_capacity((wanted.end - wanted.start) as usize + 1);
        offsets.push(0);
        for id in wanted {
            offsets.push((files.number(ENDS_FILE, id)?.saturating_sub(first)) as i64);
            if offsets.len() > 1 && offsets[offsets.len() - 1] < offsets[offsets.len() - 2] {
                return Err(self.damaged());
            }
        }
        let bytes = offsets[offsets.len() - 1] as u64;
        Ok(Texts { text: files.bytes(first, first + bytes)?, offsets })
    }

    /// The id of the vertex with each of `names`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a name that no vertex has; names that cannot be read, or are damaged.
    pub fn find(self, names: &[&str]) -> Result<Vec<u64>> {
        let mut files = Files::new(self.graph);
        let places = self.entry(PLACES_FILE)?.bytes / size_of::<u64>() as u64;
        if !places.is_power_of_two() {
            return Err(self.damaged());
        }
        names.iter().map(|name| self.find_one(name, places, &mut files)).collect()
    }

    fn find_one(self, name: &str, places: u64, files: &mut Files<'g>) -> Result<u64> {
        let hash = hash(name.as_bytes());
        let mut at = hash & (places - 1);
        for _ in 0..places {
            let place = files.number(PLACES_FILE, at)?;
            if place == 0 {
                break;
            }
            if let Some(number) = number_in(place, hash) {
                let id = u64::from(number);
                let start = if id == 0 { 0 } else { files.number(ENDS_FILE, id - 1)? };
                let end = files.number(ENDS_FILE, id)?;
                if end.checked_sub(start) == Some(name.len() as u64)
                    && files.bytes(start, end)? == name.as_bytes()
                {
                    return Ok(id);
                }
            }
            at = (at + 1) & (places - 1);
        }
        Err(Error::new(ErrorKind::Input, "find vertex")
            .object(name)
            .expected(format!("one of the graph's {} names", self.graph.manifest().vertices)))
    }

    fn entry(self, name: &str) -> Result<&'g FileEntry> {
        self.graph.dir().entry(name)
    }

    fn damaged(self) -> Error {
        Error::new(ErrorKind::Format, "read the names of vertices of")
            .object(self.graph.dir().path().display())
            .expected("names one after the other")
            .got("others")
    }
}

/// A chunk of a file of numbers, by the file's name and the chunk's number.
type NumbersKey = (&'static str, u64);

/// Chunks of the files of names that were read; they stay until this is dropped.
struct Files<'g> {
    graph: &'g Graph,
    numbers: HashMap<NumbersKey, Arc<Vec<u64>>>,
    text: HashMap<u64, Arc<Vec<u8>>>,
    /// The last chunk of numbers that was asked for.
    last: Option<(NumbersKey, Arc<Vec<u64>>)>,
    held: Vec<Reservation>,
}

impl<'g> Files<'g> {
    fn new(graph: &'g Graph) -> Self {
        let (numbers, text) = (HashMap::new(), HashMap::new());
        Self { graph, numbers, text, last: None, held: Vec::new() }
    }

    /// Number `at` of a file of numbers.
    fn number(&mut self, file: &'static str, at: u64) -> Result<u64> {
        const NUMBERS: u64 = (CHUNK_BYTES / size_of::<u64>()) as u64;
        let key = (file, at / NUMBERS);
        if self.last.as_ref().is_none_or(|last| last.0 != key) {
            let chunk = match self.numbers.get(&key) {
                Some(chunk) => Arc::clone(chunk),
                None => Arc::new(self.read(file, key.1)?),
            };
            self.numbers.insert(key, Arc::clone(&chunk));
            self.last = Some((key, chunk));
        }
        let number = self.last.as_ref().and_then(|(_, chunk)| chunk.get((at % NUMBERS) as usize));
        number.copied().ok_or_else(|| Names { graph: self.graph }.damaged())
    }

    /// Bytes `start` to `end` of the texts.
    fn bytes(&mut self, start: u64, end: u64) -> Result<Vec<u8>> {
        const BYTES: u64 = CHUNK_BYTES as u64;
        let mut bytes = Vec::new();
        for number in start / BYTES..end.div_ceil(BYTES) {
            let chunk = match self.text.get(&number) {
                Some(chunk) => Arc::clone(chunk),
                None => Arc::new(self.read(TEXT_FILE, number)?),
            };
            let place = |at: u64| at.saturating_sub(number * BYTES).min(BYTES) as usize;
            let part = chunk.get(place(start)..place(end));
            bytes.extend(part.ok_or_else(|| Names { graph: self.graph }.damaged())?);
            self.text.insert(number, chunk);
        }
        Ok(bytes)
    }

    fn read<T: Element>(&mut self, file: &str, number: u64) -> Result<Vec<T>> {
        let memory = self.graph.memory();
        self.held.push(memory.reserve(CHUNK_BYTES as u64, "the names of vertices")?);
        let dir = self.graph.dir();
        read_chunk(&dir.path().join(file), dir.entry(file)?, number)
    }
}
