//! What a path names: a file, which can be opened again, or a pipe, which comes once. Packed or not.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_core::{Error, ErrorKind, Result};

use super::chunks::HEAD_BYTES;
use super::packing::{HEADER_BYTES, Packing};

/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// What a path names, looked at but not read.
#[derive(Clone)]
pub(crate) struct Raw {
    path: PathBuf,
    packing: Packing,
    /// The first bytes as they lie there.
    header: Vec<u8>,
    pipe: Option<Arc<Pipe>>,
}

/// The first bytes of a text, unpacked.
pub(crate) struct Head {
    pub bytes: Vec<u8>,
    /// Whether the text has no more bytes than `bytes`.
    pub is_whole: bool,
}

impl Deref for Head {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes that come once.
struct Pipe {
    /// The first [`HEAD_BYTES`] of them.
    head: Vec<u8>,
    /// The others, until somebody takes them.
    rest: Mutex<Option<Box<dyn Read + Send>>>,
}

impl Raw {
    /// Looks at the file or pipe at `path`; `-` is standard input. Waits for the first bytes of a pipe.
    ///
    /// # Errors
    /// An I/O error; an input error for a directory.
    pub fn open(path: &Path) -> Result<Self> {
        if path.as_os_str() == STANDARD_INPUT {
            return Self::of_pipe("standard input".into(), Box::new(io::stdin()));
        }
        let failed = |e| Error::io("read", path.display(), e);
        let kind = path.metadata().map_err(failed)?;
        if kind.is_dir() {
            let error = Error::new(ErrorKind::Input, "read").object(path.display());
            return Err(error.expected("a file").got("a directory"));
        }
        let mut file = File::open(path).map_err(failed)?;
        if !kind.is_file() {
            return Self::of_pipe(path.into(), Box::new(file));
        }
        let mut header = Vec::with_capacity(HEADER_BYTES);
        (&mut file).take(HEADER_BYTES as u64).read_to_end(&mut header).map_err(failed)?;
        Ok(Self { path: path.into(), packing: Packing::of(&header), header, pipe: None })
    }

    fn of_pipe(path: PathBuf, mut rest: Box<dyn Read + Send>) -> Result<Self> {
        let mut head = Vec::new();
        let read = (&mut rest).take(HEAD_BYTES).read_to_end(&mut head);
        read.map_err(|e| Error::io("read", path.display(), e))?;
        let header = head[..head.len().min(HEADER_BYTES)].to_vec();
        let pipe = Some(Arc::new(Pipe { head, rest: Mutex::new(Some(rest)) }));
        Ok(Self { path, packing: Packing::of(&header), header, pipe })
    }

    /// A file that is taken as it lies there.
    pub fn unpacked(path: &Path) -> Self {
        Self { path: path.into(), packing: Packing::None, header: Vec::new(), pipe: None }
    }

    /// The path, or what a message calls it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// Whether it comes once.
    pub fn is_pipe(&self) -> bool {
        self.pipe.is_some()
    }

    /// Bytes as they lie there; `None` of a pipe.
    pub fn bytes(&self) -> Option<u64> {
        if self.is_pipe() { None } else { self.path.metadata().ok().map(|meta| meta.len()) }
    }

    /// Whether it starts with these bytes, as it lies there.
    pub fn starts_with(&self, magic: &[u8]) -> bool {
        self.header.starts_with(magic)
    }

    /// Bytes that reading it holds.
    pub fn held_bytes(&self) -> u64 {
        self.packing.held_bytes(&self.header)
    }

    /// Its first [`HEAD_BYTES`], unpacked. Of a pipe, what of them its first bytes give.
    ///
    /// # Errors
    /// An I/O error, of unpacking too.
    pub fn head(&self) -> Result<Head> {
        let failed = |e| Error::io(self.packing.op(), self.path.display(), e);
        let mut bytes = Vec::new();
        let (packed, goes_on): (Box<dyn Read + Send + '_>, bool) = match &self.pipe {
            None => (Box::new(File::open(&self.path).map_err(failed)?), false),
            Some(pipe) => (Box::new(&pipe.head[..]), pipe.head.len() as u64 == HEAD_BYTES),
        };
        let mut unpacked = self.packing.unpack(packed, &self.header).take(HEAD_BYTES);
        match unpacked.read_to_end(&mut bytes) {
            // It goes on after what is here.
            Err(_) if goes_on => {}
            read => drop(read.map_err(failed)?),
        }
        let is_whole = (bytes.len() as u64) < HEAD_BYTES && !goes_on;
        Ok(Head { bytes, is_whole })
    }

    /// All of it from byte `offset` on, unpacked.
    ///
    /// # Errors
    /// An I/O error; an input error for a pipe that was read already.
    pub fn read(&self, offset: u64) -> Result<Box<dyn Read + Send>> {
        let Some(pipe) = &self.pipe else {
            let failed = |e| Error::io("read", self.path.display(), e);
            let mut file = File::open(&self.path).map_err(failed)?;
            if offset > 0 {
                file.seek(SeekFrom::Start(offset)).map_err(failed)?;
            }
            return Ok(self.packing.unpack(file, &self.header));
        };
        let rest = pipe.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(rest) = rest else {
            let error = Error::new(ErrorKind::Input, "read again").object(self.path.display());
            return Err(error.expected("a file").got("a pipe, which comes once"));
        };
        let packed = Cursor::new(pipe.head.clone()).chain(rest);
        Ok(self.packing.unpack(packed, &self.header))
    }

    /// Fails for a pipe, in whose place `what` needs a file.
    ///
    /// # Errors
    /// An input error.
    pub fn only_file(&self, what: impl std::fmt::Display) -> Result<()> {
        if !self.is_pipe() {
            return Ok(());
        }
        let error = Error::new(ErrorKind::Input, "read").object(self.path.display());
        Err(error.expected(format!("a file, for {what}")).got("a pipe, which comes once"))
    }
}
