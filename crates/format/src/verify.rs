//! Reads a whole graph and lists what is damaged.
//!
//! Cost: every byte is read once and checksummed twice (its block, the whole file), one of feature rows
//! a third time (its row), on one core.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use tiergraph_core::{Cancel, ErrorKind, Progress, Result, crc32c};

use crate::block;
use crate::directory::{GraphDir, check_length};
use crate::features::{self, FeatureFiles, Mismatches, RowCheck};
use crate::flat;
use crate::hetero::{HETERO, HeteroManifest};
use crate::manifest::{FileEntry, FileKind, MANIFEST, Manifest};
use crate::rows::{PAGE_BYTES, check_page};
use crate::salt::Salt;

/// The report of [`verify`]: what it read, and the damage that it found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Files read, the manifest included.
    pub files: u64,
    /// Blocks and chunks read.
    pub blocks: u64,
    /// Bytes read.
    pub bytes: u64,
    /// The damaged places, in file order; empty if nothing is damaged.
    pub damage: Vec<Damage>,
}

/// A damaged place in a file of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file's name in the graph.
    pub file: String,
    /// The block (or chunk, if flat) that is damaged; 0 if it is the file as a whole.
    pub block: u64,
    /// The byte of the file at which the damaged block, chunk or page begins.
    pub offset: u64,
    /// What was expected and what was found.
    pub what: String,
}

/// Checks the manifest, and the length and every checksum of every file of the graph at `path`; of
/// a heterogeneous one, of all graphs that it consists of.
///
/// # Errors
/// Only if there is no graph at `path`, a stripe cannot be found, or the run is cancelled: damage
/// goes into the report.
pub fn verify(path: &Path, progress: &dyn Progress, cancel: &Cancel) -> Result<Report> {
    if !HeteroManifest::is_at(path) {
        return verify_graph(path, progress, cancel);
    }
    let mut report = Report { files: 1, ..Report::default() };
    let types = match HeteroManifest::read(path) {
        Ok(types) => types,
        Err(e) if e.kind() == ErrorKind::Format => {
            report.add(HETERO, 0, 0, e.to_string());
            return Ok(report);
        }
        Err(e) => return Err(e),
    };
    for graph in types.graphs() {
        let part = verify_graph(&path.join(graph), progress, cancel)?;
        report.files += part.files;
        report.blocks += part.blocks;
        report.bytes += part.bytes;
        let inside = |damage: Damage| Damage { file: format!("{graph}/{}", damage.file), ..damage };
        report.damage.extend(part.damage.into_iter().map(inside));
    }
    let manifests: Result<Vec<Manifest>> =
        types.graphs().map(|graph| Manifest::read(&path.join(graph))).collect();
    // A manifest that cannot be read is in the report.
    if let Ok(manifests) = manifests
        && let Err(e) = types.check(&manifests.iter().collect::<Vec<_>>())
    {
        report.add(HETERO, 0, 0, e.to_string());
    }
    Ok(report)
}

fn verify_graph(path: &Path, progress: &dyn Progress, cancel: &Cancel) -> Result<Report> {
    let mut report = Report { files: 1, ..Report::default() };
    let graph = match GraphDir::open_unchecked(path) {
        Ok(graph) => graph,
        Err(e) if e.kind() == ErrorKind::Format => {
            report.add(MANIFEST, 0, 0, e.to_string());
            return Ok(report);
        }
        Err(e) => return Err(e),
    };
    let total = graph.manifest().files.values().map(|file| file.bytes).sum();
    let mut shown = Instant::now();
    let mut tick = |done: u64| {
        if shown.elapsed() >= Duration::from_millis(200) {
            shown = Instant::now();
            progress.update("verify", done, total, "bytes");
        }
        cancel.check("verify")
    };
    for (name, entry) in &graph.manifest().files {
        report.files += 1;
        verify_file(&graph, name, entry, &mut report, &mut tick)?;
    }
    progress.update("verify", report.bytes, total, "bytes");
    Ok(report)
}

fn verify_file(
    graph: &GraphDir,
    name: &str,
    entry: &FileEntry,
    report: &mut Report,
    tick: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let stripes = graph.stripes_of(name, entry);
    for (path, bytes) in &stripes {
        if let Err(e) = check_length(path, *bytes) {
            report.add(name, 0, 0, e.to_string());
        }
    }
    let Ok(mut files) =
        stripes.iter().map(|(path, _)| Stripe::open(path)).collect::<std::io::Result<Vec<_>>>()
    else {
        return Ok(());
    };
    let unit = match entry.kind {
        FileKind::Flat => flat::CHUNK_BYTES as u64,
        _ => u64::from(graph.manifest().block_bytes),
    };
    let found_before = report.damage.len();
    let crcs = page_checksums(graph, name, entry);
    let mut rows = row_checksums(graph, name);
    let mut buffer = vec![0; unit.min(entry.bytes) as usize];
    let (count, mut crc) = (files.len() as u64, 0);
    for number in 0..entry.blocks {
        tick(report.bytes)?;
        let offset = number * unit;
        let block = &mut buffer[..(entry.bytes - offset).min(unit) as usize];
        if let Err(e) = files[(number % count) as usize].read(block) {
            report.add(name, number, offset, format!("cannot be read: {e}"));
            return Ok(());
        }
        crc = crc32c::crc32c_append(crc, block);
        report.blocks += 1;
        report.bytes += block.len() as u64;
        let checks = Checks { salt: graph.manifest().salt(name), crcs: crcs.as_deref() };
        let sound = report.damage.len();
        verify_block(name, entry, checks, number, offset, block, report);
        if let Some(rows) = &mut rows {
            verify_rows(rows, name, number, offset, block, sound, report);
        }
    }
    // Sound blocks of another build of the same graph.
    if crc != entry.crc32c && report.damage.len() == found_before {
        let what = format!("expected CRC-32C {:08x} of the file, got {crc:08x}", entry.crc32c);
        report.add(name, 0, 0, what);
    }
    Ok(())
}

/// The checksums of a feature file's pages; none where they are damaged themselves, which is reported
/// with their own file.
fn page_checksums(graph: &GraphDir, name: &str, entry: &FileEntry) -> Option<Vec<u32>> {
    if entry.kind != FileKind::Features {
        return None;
    }
    let crc = FeatureFiles::crc_of(name);
    flat::read(&graph.path().join(&crc), graph.entry(&crc).ok()?).ok()
}

/// A comparison of the rows in the file `name` with their checksums; none for files without.
fn row_checksums(graph: &GraphDir, name: &str) -> Option<RowCheck> {
    let manifest = graph.manifest();
    let of_vertices = manifest.features.iter().map(|(name, entry)| (FeatureFiles::of(name), entry));
    let of_edges = manifest.edge_features.iter();
    let of_edges = of_edges.map(|(name, entry)| (FeatureFiles::of_edges(name), entry));
    let (files, entry) = of_vertices.chain(of_edges).find(|(files, _)| files.rows == name)?;
    let crcs = manifest.files.get(&files.row_crc)?.clone();
    Some(RowCheck::new(entry, graph.path().join(&files.row_crc), crcs))
}

/// Compares the rows that end in a block, but for those on the damaged pages that the report has from
/// number `sound` on: more than one row that differs is one damage.
fn verify_rows(
    rows: &mut RowCheck,
    name: &str,
    number: u64,
    offset: u64,
    block: &[u8],
    sound: usize,
    report: &mut Report,
) {
    let pages = &report.damage[sound..];
    let is_damaged = |bytes: Range<u64>| {
        pages.iter().any(|p| p.offset < bytes.end && bytes.start < p.offset + PAGE_BYTES as u64)
    };
    if let Some(Mismatches { first, rows: differ }) = rows.check(offset, block, is_damaged) {
        let mut error = first.error(name, rows.layout());
        if differ > 1 {
            let got = format!("{:08x}, and others for {} more rows", first.computed, differ - 1);
            error = error.got(got);
        }
        report.add(name, number, rows.layout().offset(first.row), error.to_string());
    }
}

/// What a file's checksums are compared with.
#[derive(Clone, Copy)]
struct Checks<'a> {
    salt: Salt,
    /// Those of pages that have none themselves.
    crcs: Option<&'a [u32]>,
}

fn verify_block(
    name: &str,
    entry: &FileEntry,
    Checks { salt, crcs }: Checks<'_>,
    number: u64,
    offset: u64,
    block: &[u8],
    report: &mut Report,
) {
    let mut note = |offset, checked: Result<()>| {
        if let Err(e) = checked {
            report.add(name, number, offset, e.to_string());
        }
    };
    match entry.kind {
        FileKind::Blocks => {
            note(offset, block::check(block, name, number, salt).map(|_| ()));
        }
        FileKind::Flat => note(offset, flat::check_chunk(block, Path::new(name), entry, number)),
        FileKind::Rows | FileKind::Features => {
            for (page, at) in block.chunks(PAGE_BYTES).zip((offset..).step_by(PAGE_BYTES)) {
                let number = at / PAGE_BYTES as u64;
                note(
                    at,
                    match (entry.kind, crcs) {
                        (FileKind::Rows, _) => check_page(page, name, number, salt),
                        (_, Some(crcs)) => features::check_page(page, crcs, name, number),
                        // The whole file's checksum is compared all the same.
                        (_, None) => Ok(()),
                    },
                );
            }
        }
    }
}

impl Report {
    fn add(&mut self, file: &str, block: u64, offset: u64, what: String) {
        self.damage.push(Damage { file: file.to_owned(), block, offset, what });
    }
}

/// A file that is read once, in order, and not kept in the page cache.
struct Stripe {
    file: File,
    read: u64,
}

impl Stripe {
    fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self { file: File::open(path)?, read: 0 })
    }

    fn read(&mut self, block: &mut [u8]) -> std::io::Result<()> {
        self.file.read_exact(block)?;
        let done = std::num::NonZeroU64::new(block.len() as u64);
        let _ = fadvise(&self.file, self.read, done, Advice::DontNeed);
        self.read += block.len() as u64;
        Ok(())
    }
}
