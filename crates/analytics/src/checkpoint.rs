//! Checkpoints: the state of a run in a file, from which a run that was killed goes on.
//!
//! A file holds the arrays of the state one after the other, little-endian; then JSON that says of which run and graph
//! they are, and the bytes and the CRC-32C of each; then 8 bytes with that JSON's length and 4 with its CRC-32C, and the 8
//! of [`MAGIC`]. A new one takes the place of the one before in one step, so that there is always a whole one. Its
//! name is the algorithm's and a checksum of its options: runs of other options leave files of their own.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result, crc32c};
use tiergraph_graph::{Checkpointing, Every, Graph};

/// The last bytes of a file.
const MAGIC: [u8; 8] = *b"TGCHECK1";
/// Bytes of what follows the JSON.
const TAIL_BYTES: usize = 20;
/// Bytes that are written, and read, at once.
const STEP_BYTES: usize = 1 << 16;

/// The description of a run and of its state, which a checkpoint's file ends with.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Description {
    algorithm: String,
    /// The options, as JSON.
    options: String,
    /// What tells a graph's build from all others: vertices have the same numbers on disk.
    build_id: String,
    /// The iterations that were done.
    iterations: u64,
    /// The bytes and the CRC-32C of each array.
    arrays: Vec<(u64, u32)>,
}

/// What a report says of the checkpoints of a run.
#[derive(Debug, Clone, Serialize)]
pub struct CheckpointReport {
    /// The file that a run like this one would go on from.
    pub checkpoint: String,
    /// How often it was written.
    pub checkpoints_written: u64,
    /// Seconds that this took, of the run's.
    pub checkpoint_seconds: f64,
    /// The iterations that an earlier run had done; `None` if this one began anew.
    pub resumed_after: Option<u64>,
}

/// The checkpoints of one run.
pub(crate) struct Checkpoint {
    asked: Checkpointing,
    path: PathBuf,
    description: Description,
    /// When the last one was written, or the run began.
    last: Instant,
    /// Iterations since then.
    since: u64,
    written: u64,
    seconds: f64,
    resumed_after: Option<u64>,
}

impl Checkpoint {
    /// The checkpoints of a run, if `graph` was opened with any; the state in the one that is there goes to `read`.
    ///
    /// # Errors
    /// A checkpoint that this run may not or cannot go on from, a folder that cannot be made.
    pub(crate) fn begin(
        graph: &Graph,
        algorithm: &str,
        options: &impl Serialize,
        read: impl FnOnce(&mut Stored<'_>) -> Result<()>,
    ) -> Result<Option<Self>> {
        let Some(asked) = graph.checkpointing().cloned() else { return Ok(None) };
        let options = serde_json::to_string(options).map_err(not_json)?;
        let name = format!("{algorithm}-{:08x}.checkpoint", crc32c::crc32c(options.as_bytes()));
        let description = Description {
            algorithm: algorithm.to_owned(),
            options,
            build_id: graph.manifest().build_id.clone(),
            iterations: 0,
            arrays: Vec::new(),
        };
        let folder = &asked.directory;
        fs::create_dir_all(folder)
            .map_err(|e| Error::io("make the folder of checkpoints", folder.display(), e))?;
        let path = folder.join(name);
        let mut this = Self {
            asked,
            path,
            description,
            last: Instant::now(),
            since: 0,
            written: 0,
            seconds: 0.0,
            resumed_after: None,
        };
        match File::open(&this.path) {
            Ok(file) => this.resume(file, read)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => (),
            Err(e) => return Err(Error::io("open the checkpoint", this.path.display(), e)),
        }
        this.last = Instant::now();
        Ok(Some(this))
    }

    fn resume(
        &mut self,
        mut file: File,
        read: impl FnOnce(&mut Stored<'_>) -> Result<()>,
    ) -> Result<()> {
        let found = describe(&mut file).map_err(|what| damaged(&self.path).got(what))?;
        let own = &self.description;
        let refused = |expected: &str, got: String| {
            Error::new(ErrorKind::Input, "go on from the checkpoint")
                .object(self.path.display())
                .expected(expected.to_owned())
                .got(got)
        };
        if (&found.algorithm, &found.options) != (&own.algorithm, &own.options) {
            let of = |d: &Description| format!("{} with {}", d.algorithm, d.options);
            return Err(
                refused(&of(own), of(&found)).hint("use another folder for this run's checkpoints")
            );
        }
        if found.build_id != own.build_id {
            return Err(refused("a checkpoint of this graph", "one of another build of it".into())
                .hint("delete the file to begin anew"));
        }
        if !self.asked.resume {
            let got = format!("one after {} iterations", found.iterations);
            return Err(refused("no checkpoint of a run that did not end", got)
                .hint("go on from it with `--resume`, or delete the file to begin anew"));
        }
        file.rewind().map_err(|e| Error::io("read the checkpoint", self.path.display(), e))?;
        let mut stored = Stored { path: &self.path, file, arrays: found.arrays.iter() };
        read(&mut stored)?;
        if stored.arrays.next().is_some() {
            return Err(damaged(&self.path).got("more state than the run has"));
        }
        self.description.iterations = found.iterations;
        self.resumed_after = Some(found.iterations);
        Ok(())
    }

    /// Whether this run of an algorithm went on from a checkpoint.
    pub(crate) fn is_resumed(&self) -> bool {
        self.resumed_after.is_some()
    }

    /// Notes that so many iterations ended.
    pub(crate) fn advance(&mut self, iterations: u64) {
        self.since += iterations;
        self.description.iterations += iterations;
    }

    /// Whether it is time for a checkpoint.
    pub(crate) fn is_due(&self) -> bool {
        match self.asked.every {
            Every::Iterations(count) => self.since >= count,
            Every::Time(time) => self.since > 0 && self.last.elapsed() >= time,
        }
    }

    /// Writes a checkpoint of the state that `write` gives.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut Kept) -> Result<()>) -> Result<()> {
        let began = Instant::now();
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let new = self.path.with_file_name(format!(".{name}.new"));
        let written = self.write_to(&new, write);
        let done = written.and_then(|()| {
            let moved = fs::rename(&new, &self.path)
                .and_then(|()| File::open(&self.asked.directory)?.sync_all());
            moved.map_err(|e| self.failed(e))
        });
        if let Err(error) = done {
            // What was there before is still whole.
            let _ = fs::remove_file(&new);
            return Err(error);
        }
        self.written += 1;
        self.seconds += began.elapsed().as_secs_f64();
        (self.last, self.since) = (Instant::now(), 0);
        Ok(())
    }

    fn write_to(&mut self, new: &Path, write: impl FnOnce(&mut Kept) -> Result<()>) -> Result<()> {
        let file = File::create(new).map_err(|e| self.failed(e))?;
        let mut kept = Kept {
            file: BufWriter::with_capacity(1 << 20, file),
            arrays: Vec::new(),
            failed: None,
        };
        write(&mut kept)?;
        self.description.arrays = std::mem::take(&mut kept.arrays);
        let json = serde_json::to_vec(&self.description).map_err(not_json)?;
        let mut end = || -> io::Result<()> {
            kept.failed.take().map_or(Ok(()), Err)?;
            kept.file.write_all(&json)?;
            kept.file.write_all(&(json.len() as u64).to_le_bytes())?;
            kept.file.write_all(&crc32c::crc32c(&json).to_le_bytes())?;
            kept.file.write_all(&MAGIC)?;
            kept.file.flush()?;
            kept.file.get_ref().sync_all()
        };
        end().map_err(|e| self.failed(e))
    }

    fn failed(&self, e: io::Error) -> Error {
        let hint = "make room there, or choose another folder; the checkpoint before it, if there is one, is whole";
        Error::io("write the checkpoint", self.path.display(), e).hint(hint)
    }

    pub(crate) fn report(&self) -> CheckpointReport {
        CheckpointReport {
            checkpoint: self.path.display().to_string(),
            checkpoints_written: self.written,
            checkpoint_seconds: self.seconds,
            resumed_after: self.resumed_after,
        }
    }
}

fn not_json(e: serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, "describe the run").source(e)
}

fn damaged(path: &Path) -> Error {
    Error::new(ErrorKind::Format, "go on from the checkpoint")
        .object(path.display())
        .expected("a whole checkpoint of this version of tiergraph")
        .hint("delete the file to begin anew")
}

/// What a file says of its state, or what is wrong with it.
fn describe(file: &mut File) -> Result<Description, String> {
    let read = |e: io::Error| e.to_string();
    let len = file.seek(SeekFrom::End(0)).map_err(read)?;
    let Some(tail) = len.checked_sub(TAIL_BYTES as u64) else {
        return Err(format!("{len} bytes"));
    };
    let mut bytes = [0; TAIL_BYTES];
    file.seek(SeekFrom::Start(tail)).and_then(|_| file.read_exact(&mut bytes)).map_err(read)?;
    let (json_len, rest) = bytes.split_at(8);
    let (crc, magic) = rest.split_at(4);
    let json_len = u64::from_le_bytes(json_len.try_into().unwrap_or_default());
    let Some(begin) = tail.checked_sub(json_len).filter(|_| *magic == MAGIC) else {
        return Err("bytes that end otherwise".into());
    };
    let mut json = vec![0; json_len as usize];
    file.seek(SeekFrom::Start(begin)).and_then(|_| file.read_exact(&mut json)).map_err(read)?;
    if crc32c::crc32c(&json).to_le_bytes() != *crc {
        return Err("a description with another checksum".into());
    }
    let found: Description = serde_json::from_slice(&json).map_err(|e| e.to_string())?;
    let bytes: u64 = found.arrays.iter().map(|(bytes, _)| bytes).sum();
    if bytes != begin {
        return Err(format!("{begin} bytes of state where its description has {bytes}"));
    }
    Ok(found)
}

/// The checkpoints of a caller's own loop, whose state is one value a vertex: power iterations by [`crate::propagate()`].
pub struct LoopCheckpoints {
    of_run: Checkpoint,
    found: Option<Vec<f64>>,
}

impl LoopCheckpoints {
    /// Those of the loop `name` with these options, as JSON, if `graph` was opened with any.
    ///
    /// # Errors
    /// A checkpoint that the loop may not or cannot go on from, a folder that cannot be made.
    pub fn begin(graph: &Graph, name: &str, options: &str) -> Result<Option<Self>> {
        let mut found = None;
        let of_run = Checkpoint::begin(graph, name, &options, |from| {
            found = Some(from.list(graph.vertices())?);
            Ok(())
        })?;
        Ok(of_run.map(|of_run| Self { of_run, found }))
    }

    /// The iterations that an earlier run had done, and its values after them.
    pub fn take(&mut self) -> Option<(u64, Vec<f64>)> {
        Some((self.of_run.resumed_after?, self.found.take()?))
    }

    /// Notes that an iteration ended with these values, and leaves a checkpoint of them if it is time for one.
    ///
    /// # Errors
    /// A file that cannot be written; the one before it is whole then.
    pub fn keep(&mut self, values: &[f64]) -> Result<()> {
        self.of_run.advance(1);
        if !self.of_run.is_due() {
            return Ok(());
        }
        self.of_run.write(|to| {
            to.array(values);
            Ok(())
        })
    }

    /// The part of a report that is about the loop's checkpoints.
    pub fn report(&self) -> CheckpointReport {
        self.of_run.report()
    }
}

/// The state that a checkpoint is written of, array by array.
pub(crate) struct Kept {
    file: BufWriter<File>,
    arrays: Vec<(u64, u32)>,
    failed: Option<io::Error>,
}

impl Kept {
    /// Writes the next array.
    pub(crate) fn array<T: Word>(&mut self, values: &[T]) {
        let (mut crc, mut step) = (0, Vec::with_capacity(STEP_BYTES));
        for part in values.chunks(STEP_BYTES / T::BYTES) {
            step.resize(part.len() * T::BYTES, 0);
            part.iter().zip(step.chunks_exact_mut(T::BYTES)).for_each(|(value, to)| value.put(to));
            crc = crc32c::crc32c_append(crc, &step);
            if self.failed.is_none() {
                self.failed = self.file.write_all(&step).err();
            }
        }
        self.arrays.push(((values.len() * T::BYTES) as u64, crc));
    }
}

/// The state in a checkpoint, array by array, in the order in which they were written.
pub(crate) struct Stored<'a> {
    path: &'a Path,
    file: File,
    arrays: std::slice::Iter<'a, (u64, u32)>,
}

impl Stored<'_> {
    /// Reads the next array, which must be as long as `values`.
    ///
    /// # Errors
    /// Another length, bytes that cannot be read or have another checksum.
    pub(crate) fn array<T: Word>(&mut self, values: &mut [T]) -> Result<()> {
        let &(bytes, crc) = self.next()?;
        self.read(bytes, crc, values)
    }

    /// Reads the next array, of so many values.
    ///
    /// # Errors
    /// Another length, bytes that cannot be read or have another checksum.
    pub(crate) fn list<T: Word + Clone + Default>(&mut self, len: usize) -> Result<Vec<T>> {
        let mut values = vec![T::default(); len];
        self.array(&mut values)?;
        Ok(values)
    }

    fn next(&mut self) -> Result<&(u64, u32)> {
        self.arrays.next().ok_or_else(|| damaged(self.path).got("less state than the run has"))
    }

    fn read<T: Word>(&mut self, bytes: u64, crc: u32, values: &mut [T]) -> Result<()> {
        if bytes != (values.len() * T::BYTES) as u64 {
            let needed = values.len() * T::BYTES;
            return Err(damaged(self.path)
                .got(format!("an array of {bytes} bytes where the run has {needed}")));
        }
        let (mut found, mut step) = (0, Vec::with_capacity(STEP_BYTES));
        for part in values.chunks_mut(STEP_BYTES / T::BYTES) {
            step.resize(part.len() * T::BYTES, 0);
            let read = self.file.read_exact(&mut step);
            read.map_err(|e| Error::io("read the checkpoint", self.path.display(), e))?;
            found = crc32c::crc32c_append(found, &step);
            part.iter_mut()
                .zip(step.chunks_exact(T::BYTES))
                .for_each(|(value, from)| value.take(from));
        }
        match found == crc {
            true => Ok(()),
            false => Err(damaged(self.path).got("state with another checksum")),
        }
    }
}

/// A value that checkpoints hold.
pub(crate) trait Word {
    /// Its bytes.
    const BYTES: usize;

    fn put(&self, to: &mut [u8]);

    fn take(&mut self, from: &[u8]);
}

macro_rules! words {
    ($($plain:ty),* ; $($atomic:ty),*) => {
        $(impl Word for $plain {
            const BYTES: usize = size_of::<Self>();

            #[inline(always)]
            fn put(&self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }

            #[inline(always)]
            fn take(&mut self, from: &[u8]) {
                *self = from.try_into().map_or(*self, Self::from_le_bytes);
            }
        })*
        $(impl Word for $atomic {
            const BYTES: usize = size_of::<Self>();

            #[inline(always)]
            fn put(&self, to: &mut [u8]) {
                self.load(Ordering::Relaxed).put(to);
            }

            #[inline(always)]
            fn take(&mut self, from: &[u8]) {
                self.get_mut().take(from);
            }
        })*
    };
}

words!(u8, u32, i32, u64, f32, f64; AtomicU8, AtomicU32, AtomicI32, AtomicU64);

impl Word for AtomicBool {
    const BYTES: usize = 1;

    fn put(&self, to: &mut [u8]) {
        u8::from(self.load(Ordering::Relaxed)).put(to);
    }

    fn take(&mut self, from: &[u8]) {
        *self.get_mut() = from != [0];
    }
}
