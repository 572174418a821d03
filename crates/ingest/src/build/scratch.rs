//! Disk space: for a build's temporary file, and for the graph that it writes.
//!
//! A temporary file has no name, so users cannot see what it takes: it is estimated and compared with
//! the free space before the first byte, counted while they grow, and reported.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::statvfs;
use tiergraph_core::{ByteSize, Error, ErrorKind, Progress, Result};
use tiergraph_format::manifest::Codec;
use tiergraph_io::temporary::{Held, TemporaryFile};

use super::options::{BuildOptions, Duplicates, Ids};
use super::outputs::Output;
use super::partition::family::RowOf;
use crate::source::{EdgeSource, SizeHint};

/// The fewest bytes of a graph's file for each arc: those of the best-packed web graphs.
const LEAST_BYTES_AN_ARC: f64 = 0.4;
/// Bytes of text from which the number of edges is estimated.
const HEAD_BYTES: u64 = 1 << 18;
/// The share of the estimated edges that must fit: an estimate must not refuse what fits.
const SURE: f64 = 0.8;

/// The time between reports of what temporary files hold.
const PERIOD: Duration = Duration::from_millis(200);

/// The temporary file of a build, and a count of the bytes in it.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: PathBuf,
    file: Mutex<Option<Arc<TemporaryFile>>>,
    held: Arc<Held>,
    expected: AtomicU64,
    /// When the bytes were last reported.
    shown: Mutex<Option<Instant>>,
}

/// Bytes that a build writes, by what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// Bytes of spooled edges.
    pub(super) spool: u64,
    /// Bytes of arcs in buckets for which memory has no room.
    pub(super) buckets: u64,
    /// Bytes of the graph.
    pub(super) graph: u64,
}

impl Scratch {
    /// A scratch in the folder `chosen`, or else in the folder of the graph that is being built.
    ///
    /// # Errors
    /// A folder that is not there.
    pub(crate) fn new(chosen: Option<&Path>, building: PathBuf) -> Result<Self> {
        let folder = chosen.map_or(building, Path::to_path_buf);
        if !folder.is_dir() {
            return Err(Error::new(ErrorKind::Input, "put temporary files in")
                .object(folder.display())
                .expected("a folder that is there")
                .hint("`--scratch DIR` names one"));
        }
        let (held, expected) = (Arc::default(), AtomicU64::new(0));
        let (file, shown) = (Mutex::default(), Mutex::default());
        Ok(Self { folder, file, held, expected, shown })
    }

    /// The temporary file, which the first call creates.
    pub(super) fn file(&self) -> Result<Arc<TemporaryFile>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*file {
            return Ok(Arc::clone(file));
        }
        let created = TemporaryFile::create_in(&self.folder)?;
        Ok(Arc::clone(file.insert(Arc::new(created.counted(Arc::clone(&self.held))))))
    }

    /// The most bytes that temporary files held at a time.
    pub(super) fn most(&self) -> u64 {
        self.held.most()
    }

    /// Reports, now and then, how much of the expected bytes the temporary files hold.
    pub(super) fn show(&self, progress: &dyn Progress) {
        let Ok(mut shown) = self.shown.try_lock() else { return };
        let now = self.held.now();
        if now > 0 && shown.is_none_or(|last| last.elapsed() >= PERIOD) {
            *shown = Some(Instant::now());
            let expected = self.expected.load(Ordering::Relaxed);
            progress.update("scratch", now, expected.max(now), "bytes");
        }
    }

    /// Fails if disks do not have `room` free, less what the temporary files hold already.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] with what is needed and what is free; errors of the system about a folder.
    pub(super) fn check(&self, room: Room, graph: &Path) -> Result<()> {
        // Arcs take the places of the edges.
        let all = room.spool.max(room.buckets);
        self.expected.store(all, Ordering::Relaxed);
        let temporary = all.saturating_sub(self.held.now());
        let parts = format!(
            "edges written aside {} or the arcs of these {}, the graph {} or more",
            ByteSize(room.spool),
            ByteSize(room.buckets),
            ByteSize(room.graph)
        );
        let apart = device(&self.folder)? != device(graph)?;
        let needs = match apart {
            true => vec![(self.folder.as_path(), temporary), (graph, room.graph)],
            false => vec![(self.folder.as_path(), temporary + room.graph)],
        };
        for (folder, bytes) in needs {
            let free = free_bytes(folder)?;
            if bytes > free {
                return Err(Error::new(ErrorKind::Io, "find room for the build in")
                    .object(folder.display())
                    .expected(format!("`{}` free ({parts})", ByteSize(bytes)))
                    .got(format!("`{}`", ByteSize(free)))
                    .hint(ELSEWHERE));
            }
        }
        Ok(())
    }
}

const ELSEWHERE: &str =
    "`--scratch DIR` puts temporary files on another disk; more `--memory` needs fewer of them";

/// Adds advice to the error of a full disk; returns any other as it is.
pub(super) fn full(error: Error) -> Error {
    let cause = std::error::Error::source(&error).and_then(|e| e.downcast_ref::<io::Error>());
    match cause.map(io::Error::kind) {
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => error.hint(ELSEWHERE),
        _ => error,
    }
}

/// Bytes that an ordinary user may still write to the file system of `folder`.
fn free_bytes(folder: &Path) -> Result<u64> {
    let stat = statvfs(folder)
        .map_err(|e| Error::io("ask for the free space of", folder.display(), e.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn device(folder: &Path) -> Result<u64> {
    let metadata = folder.metadata();
    metadata.map(|m| m.dev()).map_err(|e| Error::io("read", folder.display(), e))
}

/// What is known of a build's input before it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub(super) undirected: bool,
    pub(super) weighted: bool,
    pub(super) vertices: Option<u64>,
    pub(super) edges: u64,
    /// Whether its edges are spooled, because the source can be read only once.
    pub(super) is_spooled: bool,
}

impl Room {
    /// Bytes that a build of `expected` with `memory` bytes of memory writes, at least.
    pub(super) fn new(options: &BuildOptions, expected: Expected, memory: u64) -> Self {
        let Expected { undirected, weighted, vertices, edges, is_spooled } = expected;
        let weight = if weighted { 4 } else { 0 };
        // Those as they are and those that are mapped.
        let ids = if options.ids == Ids::Map { 16 } else { 8 };
        let outputs = Output::all(options, undirected);
        let (mut buckets, mut graph) = (0, 0.0);
        let arcs = |output: &Output| match output.row_of(undirected) {
            RowOf::Both => 2 * edges,
            _ => edges,
        };
        // As many rows as a bucket has at least, and all columns.
        let key = vertices.map_or(4, |n| u64::from(u64::BITS - n.leading_zeros()) + 5).div_ceil(8);
        for output in Output::of_families(&outputs, undirected) {
            buckets += arcs(&output) * (key + if output.is_weighted() { weight } else { 0 });
        }
        for output in &outputs {
            graph += arcs(output) as f64
                * match options.codec {
                    _ if options.duplicates == Duplicates::Remove => 0.0,
                    Codec::Raw => 4.0,
                    Codec::Packed => LEAST_BYTES_AN_ARC,
                };
        }
        Self {
            spool: if is_spooled { edges * (ids + 2 * weight) } else { 0 },
            // What memory keeps is at most half of it.
            buckets: buckets.saturating_sub(memory / 2),
            graph: graph as u64,
        }
    }
}

/// The number of edges of a source before it is read: what the source says, or a safe share of an
/// estimate from the beginning of its file; 0 where nothing is known.
pub(super) fn expected_edges(source: &dyn EdgeSource) -> u64 {
    let SizeHint { edges, bytes, .. } = source.size_hint();
    if let Some(edges) = edges {
        return edges;
    }
    let Some(bytes) = bytes else { return 0 };
    let mut head = Vec::new();
    let read =
        File::open(source.describe()).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    // Of what is compressed, lines are not seen.
    if read.is_err() || head.is_empty() || head.contains(&0) || !head.is_ascii() {
        return 0;
    }
    let is_edge = |line: &&[u8]| line.first().is_some_and(u8::is_ascii_digit);
    let edges = head.split(|&byte| byte == b'\n').filter(is_edge).count() as f64;
    (edges / head.len() as f64 * bytes as f64 * SURE) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(undirected: bool, weighted: bool) -> Room {
        let options = BuildOptions::default();
        let (vertices, edges) = (Some(1 << 25), 1 << 29);
        let input = Expected { undirected, weighted, vertices, edges, is_spooled: true };
        Room::new(&options, input, 0)
    }

    #[test]
    fn an_undirected_graph_of_a_billion_arcs_needs_8_bytes_an_edge() {
        let room = room(true, false);
        assert_eq!(room.spool, 8 << 29);
        assert!((4 << 29..8 << 29).contains(&room.buckets), "{}", room.buckets);
    }

    #[test]
    fn a_disk_without_room_is_refused_with_both_figures() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(None, dir.path().to_owned()).unwrap();
        scratch.check(Room { spool: 1, buckets: 1, graph: 1 }, dir.path()).unwrap();
        let error = scratch.check(Room { spool: 1 << 60, ..room(true, false) }, dir.path());
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        let text = error.to_string();
        assert!(text.contains("edges written aside 1048576.0 TiB"), "{text}");
        assert!(text.contains("hint: `--scratch DIR` puts"), "{text}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_full_disk_says_what_to_do_and_a_missing_file_does_not() {
        let of = |code| full(Error::io("write", "t", io::Error::from_raw_os_error(code)));
        assert!(of(28).to_string().ends_with(ELSEWHERE));
        assert!(!of(2).to_string().contains("hint"));
    }
}
