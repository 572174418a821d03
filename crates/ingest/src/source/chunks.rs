//! A file in large chunks, read (and unpacked) by a thread of its own while the caller parses.
//!
//! A chunk ends at the end of a line or of a record, so that a parser never sees half of one. Three
//! chunks exist at most: one being read, one waiting, one being parsed.

use std::io::Read;
use std::path::Path;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{ByteSize, Error, ErrorKind, Result, panics, threads};

use super::raw::{Head, Raw};

/// Bytes of a chunk of lines: large enough that starting threads on it costs nothing.
const CHUNK_BYTES: usize = 8 << 20;
/// Bytes of the smallest chunk of lines.
const LEAST_CHUNK_BYTES: usize = 256 << 10;
/// Times a chunk's bytes that a source of lines holds: three chunks, and the edges of one, in parts and joined.
const CHUNKS_HELD: u64 = 9;
/// Bytes of a chunk of records: all that are in flight at once leave a last-level cache to the table
/// that records are looked up in.
const RECORD_CHUNK_BYTES: usize = 1 << 20;
/// Bytes of the longest line of neighbours, which holds 100 million of them; a longer one is an error.
const LINE_BYTES: usize = 1 << 30;
/// Bytes from which the dialect of a text is found.
pub(crate) const HEAD_BYTES: u64 = 1 << 20;
/// The mark that editors put before text in UTF-8.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// Where one chunk may end and the next begin.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// After a line feed, or at the end of the file.
    Line,
    /// At a multiple of so many bytes.
    Record(usize),
}

impl Cut {
    /// Where the last whole line or record of `chunk` ends; `None` if it has none.
    fn before(self, chunk: &[u8]) -> Option<usize> {
        match self {
            Self::Line => chunk.iter().rposition(|&b| b == b'\n').map(|end| end + 1),
            Self::Record(bytes) => Some(chunk.len() / bytes * bytes).filter(|&cut| cut > 0),
        }
    }
}

/// A description of the part of a file to read, and of how it is cut into chunks.
#[derive(Clone)]
pub(crate) struct ChunkSpec {
    pub raw: Raw,
    pub cut: Cut,
    /// Bytes of a mark before the text, which are skipped.
    pub mark: usize,
    /// Whether carriage returns end lines, in place of line feeds or beside them.
    pub carriage_returns: bool,
    /// Bytes of the longest line that is read; a longer one is an error.
    pub line_bytes: usize,
    /// The offset of the first byte to read.
    pub offset: u64,
    /// The number of bytes to read: all by default.
    pub len: u64,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
}

impl ChunkSpec {
    /// All lines of a file or pipe, unpacked.
    ///
    /// # Errors
    /// An I/O error, and an input error for text that is not UTF-8.
    pub fn lines(raw: &Raw) -> Result<Self> {
        let mut spec = Self {
            raw: raw.clone(),
            cut: Cut::Line,
            mark: 0,
            carriage_returns: false,
            line_bytes: LINE_BYTES,
            offset: 0,
            len: u64::MAX,
            chunk_bytes: CHUNK_BYTES,
        };
        let head = spec.head()?;
        if [b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| head.starts_with(*mark)) {
            return Err(Error::new(ErrorKind::Input, "read")
                .object(spec.path().display())
                .expected("text in UTF-8 or ASCII")
                .got("UTF-16")
                .hint("convert it first: `iconv --from-code UTF-16 --to-code UTF-8`"));
        }
        spec.mark = if head.starts_with(UTF8_MARK) { UTF8_MARK.len() } else { 0 };
        let ends = head.iter().zip(&head[1.min(head.len())..]);
        let last = head.last().filter(|_| head.is_whole);
        spec.carriage_returns = last == Some(&b'\r')
            || ends.into_iter().any(|pair| *pair.0 == b'\r' && *pair.1 != b'\n');
        Ok(spec)
    }

    /// Makes chunks of lines as large as a build in so much memory lets them be.
    pub fn keep_within(&mut self, memory: u64) {
        let bytes = memory / 8 / CHUNKS_HELD;
        self.chunk_bytes = (bytes as usize).clamp(LEAST_CHUNK_BYTES, CHUNK_BYTES);
    }

    /// Bytes that chunks of lines and their edges hold.
    pub fn held_bytes(&self) -> u64 {
        self.raw.held_bytes() + CHUNKS_HELD * self.chunk_bytes as u64
    }

    /// Bytes that they hold at most, in a build with any amount of memory.
    pub fn held_bytes_at_most(&self) -> u64 {
        self.raw.held_bytes() + CHUNKS_HELD * CHUNK_BYTES as u64
    }

    /// The path of the file, or what a message calls a pipe.
    pub fn path(&self) -> &Path {
        self.raw.path()
    }

    /// The first lines of the text, as the chunks have them: whole ones, but where one is longer than a head.
    pub fn head(&self) -> Result<Head> {
        let Head { mut bytes, is_whole } = self.raw.head()?;
        self.normalise(&mut bytes, 0);
        bytes.drain(..self.mark.min(bytes.len()));
        if let (false, Some(cut)) = (is_whole, self.cut.before(&bytes)) {
            bytes.truncate(cut);
        }
        Ok(Head { bytes, is_whole })
    }

    /// Turns the line ends in `text`, from byte `from` on, into line feeds.
    fn normalise(&self, text: &mut [u8], from: usize) {
        if self.carriage_returns {
            text[from..].iter_mut().filter(|b| **b == b'\r').for_each(|b| *b = b'\n');
        }
    }

    /// `len` bytes of a file from `offset` on, in records of `record` bytes.
    pub fn records(path: &Path, record: usize, offset: u64, len: u64) -> Self {
        let chunk_bytes = RECORD_CHUNK_BYTES / record * record;
        let cut = Cut::Record(record);
        Self {
            raw: Raw::unpacked(path),
            cut,
            mark: 0,
            carriage_returns: false,
            line_bytes: LINE_BYTES,
            offset,
            len,
            chunk_bytes,
        }
    }

    /// Opens the file and starts a thread that reads it.
    pub fn start(&self) -> Result<Chunks> {
        let mut input = self.raw.read(self.offset)?.take(self.len);
        let failed = |e| Error::io("read", self.path().display(), e);
        input.read_exact(&mut vec![0; self.mark]).map_err(failed)?;
        let input = Box::new(input);
        Chunks::new(Reader { input, spec: self.clone(), carry: Vec::new(), ended: false })
    }
}

/// The length of a file; an error for anything but a file.
pub(crate) fn file_bytes(path: &Path) -> Result<u64> {
    let meta = path.metadata().map_err(|e| Error::io("read", path.display(), e))?;
    if meta.is_file() {
        return Ok(meta.len());
    }
    let got = if meta.is_dir() { "a directory" } else { "a pipe or a device" };
    let e = Error::new(ErrorKind::Input, "read").object(path.display());
    Err(e.expected("a file").got(got))
}

/// The chunks of one file, in order.
pub(crate) struct Chunks {
    filled: Receiver<Result<Vec<u8>>>,
    spare: Sender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl Chunks {
    fn new(mut reader: Reader) -> Result<Self> {
        let (send, filled) = bounded(1);
        let (spare, spares) = bounded::<Vec<u8>>(2);
        let mut read = move |to: &Sender<Result<Vec<u8>>>| {
            loop {
                let mut chunk = spares.try_recv().unwrap_or_default();
                if !reader.fill(&mut chunk)? || to.send(Ok(chunk)).is_err() {
                    return Ok(());
                }
            }
        };
        let body = move || {
            if let Err(error) = panics::caught(|| read(&send)) {
                let _ = send.send(Err(error));
            }
        };
        let thread = threads::start("read-edges", body)?;
        Ok(Self { filled, spare, thread: Some(thread) })
    }

    /// Replaces `chunk` by the next one, and uses its memory again; false at the end.
    pub fn next(&mut self, chunk: &mut Vec<u8>) -> Result<bool> {
        match self.filled.recv() {
            Ok(filled) => {
                // A full channel means that there are spares enough.
                let _ = self.spare.try_send(std::mem::replace(chunk, filled?));
                Ok(true)
            }
            Err(_) => {
                chunk.clear();
                Ok(false)
            }
        }
    }
}

/// Replaces `chunk` by the next one of a source that opens its file at the first; false at the end.
pub(crate) fn next_chunk(
    chunks: &mut Option<Chunks>,
    spec: &ChunkSpec,
    chunk: &mut Vec<u8>,
) -> Result<bool> {
    match chunks {
        Some(chunks) => chunks.next(chunk),
        None => chunks.insert(spec.start()?).next(chunk),
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // With the receiver gone the thread's next send fails and it ends.
        self.filled = crossbeam_channel::never();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The reading thread's state.
struct Reader {
    input: Box<dyn Read + Send>,
    spec: ChunkSpec,
    /// The beginning of a line whose end has not been read yet.
    carry: Vec<u8>,
    ended: bool,
}

impl Reader {
    /// Fills `chunk` up to a cut; false at the end of the input.
    fn fill(&mut self, chunk: &mut Vec<u8>) -> Result<bool> {
        chunk.clear();
        chunk.append(&mut self.carry);
        let mut target = self.spec.chunk_bytes;
        loop {
            self.read_to(chunk, target)?;
            if self.ended {
                return Ok(!chunk.is_empty());
            }
            if let Some(cut) = self.spec.cut.before(chunk) {
                self.carry.extend_from_slice(&chunk[cut..]);
                chunk.truncate(cut);
                return Ok(true);
            }
            if chunk.len() >= self.spec.line_bytes {
                return Err(long_line(self.spec.path(), self.spec.line_bytes));
            }
            target *= 2;
        }
    }

    fn read_to(&mut self, chunk: &mut Vec<u8>, target: usize) -> Result<()> {
        let (before, want) = (chunk.len(), target.saturating_sub(chunk.len()));
        let got = (&mut self.input)
            .take(want as u64)
            .read_to_end(chunk)
            .map_err(|e| Error::io(self.spec.raw.packing().op(), self.spec.path().display(), e))?;
        self.spec.normalise(chunk, before);
        self.ended = got < want;
        Ok(())
    }
}

/// The error of a line of more than `bytes` bytes.
pub(crate) fn long_line(path: &Path, bytes: usize) -> Error {
    Error::new(ErrorKind::Format, "read lines of")
        .object(path.display())
        .expected(format!("lines of at most `{}`", ByteSize(bytes as u64)))
        .got("a longer one")
}
