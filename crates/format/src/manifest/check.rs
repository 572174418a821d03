//! What a manifest must say for its files to be a graph.

use std::path::Path;

use super::{FileKind, MANIFEST, Manifest};
use crate::block::BLOCK_ALIGN;
use crate::edges;
use crate::features::{FOLDERS, FeatureFiles, FeaturesEntry, PAGE_BYTES};
use crate::names;

/// No file is longer, so that offsets never overflow.
const MOST_BYTES: u64 = 1 << 60;

impl Manifest {
    /// What no manifest of this version can say.
    pub(super) fn check(&self) -> Result<(), String> {
        let size = self.block_bytes;
        if size == 0 || !size.is_multiple_of(BLOCK_ALIGN) {
            return Err(format!("blocks of {size} bytes, not a multiple of {BLOCK_ALIGN}"));
        }
        if !matches!(self.id_width, 4 | 8) {
            return Err(format!("ids of {} bytes, neither 4 nor 8", self.id_width));
        }
        for (name, file) in &self.files {
            // Any other path could point outside the graph.
            let bare = FOLDERS
                .iter()
                .find_map(|folder| name.strip_prefix(folder)?.strip_prefix('/'))
                .unwrap_or(name);
            if Path::new(bare).file_name() != Some(bare.as_ref()) || name == MANIFEST {
                return Err(format!("a file named `{name}`"));
            }
            let unit = match file.kind {
                FileKind::Blocks | FileKind::Rows | FileKind::Features => u64::from(size),
                FileKind::Flat => crate::flat::CHUNK_BYTES as u64,
            };
            if file.bytes > MOST_BYTES {
                return Err(format!("`{name}` of {} bytes", file.bytes));
            }
            let chunks = if file.kind == FileKind::Flat { file.blocks } else { 0 };
            if file.blocks != file.bytes.div_ceil(unit) || file.chunks.len() as u64 != chunks {
                return Err(format!(
                    "`{name}` of {} bytes with {} blocks and {} chunk checksums",
                    file.bytes,
                    file.blocks,
                    file.chunks.len()
                ));
            }
        }
        for (name, entry) in &self.features {
            self.check_features(name, entry, &FeatureFiles::of(name), Some(self.vertices))?;
        }
        self.files.keys().try_for_each(|name| self.check_column(name))?;
        self.check_names()?;
        // Edges as they were given: more than the graph kept, perhaps.
        self.edge_features.iter().try_for_each(|(name, entry)| {
            self.check_features(name, entry, &FeatureFiles::of_edges(name), None)
        })
    }

    /// Names must all be there, one for each vertex, with a table that finds them.
    fn check_names(&self) -> Result<(), String> {
        let all = [names::TEXT_FILE, names::ENDS_FILE, names::PLACES_FILE];
        let files = all.map(|name| self.files.get(name).filter(|file| file.kind == FileKind::Flat));
        let numbers = |bytes: u64| bytes / size_of::<u64>() as u64;
        match files {
            [None, None, None] => Ok(()),
            [Some(_), Some(ends), Some(places)]
                if self.vertices.checked_mul(size_of::<u64>() as u64) == Some(ends.bytes)
                    && numbers(places.bytes).is_power_of_two()
                    && numbers(places.bytes) > self.vertices =>
            {
                Ok(())
            }
            _ => Err(format!("names that are not those of {} vertices", self.vertices)),
        }
    }

    /// A column of edges must have a value for each arc, and every page a checksum.
    fn check_column(&self, name: &str) -> Result<(), String> {
        let Some(widths) = edges::column_widths(name) else { return Ok(()) };
        let file = &self.files[name];
        let pages = file.bytes / PAGE_BYTES as u64;
        let crc = self.files.get(&edges::crc_file(name));
        let lengths = || widths.iter().any(|&w| edges::column_bytes(self.arcs, w) == file.bytes);
        let has_crc = crc.is_some_and(|crc| {
            crc.kind == FileKind::Flat && crc.bytes == pages * size_of::<u32>() as u64
        });
        if file.kind == FileKind::Features && lengths() && has_crc {
            return Ok(());
        }
        Err(format!(
            "`{name}` of {} bytes, not pages of a value for each of {} arcs with checksums of their \
             own: store the values of edges again",
            file.bytes, self.arcs
        ))
    }

    /// The rows must fill their file, and every page must have a checksum; every row too, if any has.
    fn check_features(
        &self,
        name: &str,
        entry: &FeaturesEntry,
        files: &FeatureFiles,
        rows: Option<u64>,
    ) -> Result<(), String> {
        if let Some(fault) = entry.layout.fault() {
            return Err(format!("features `{name}` of {fault}"));
        }
        if entry.rows > MOST_BYTES / (2 * entry.layout.stride() as u64) {
            return Err(format!("features `{name}` of {} rows", entry.rows));
        }
        let has = |name: &str, kind: FileKind, bytes: Option<u64>| {
            let file = self.files.get(name);
            file.is_some_and(|file| file.kind == kind && Some(file.bytes) == bytes)
        };
        let bytes = entry.layout.file_bytes(entry.rows);
        let crcs = (bytes / PAGE_BYTES as u64).checked_mul(size_of::<u32>() as u64);
        let ids = self.vertices.checked_mul(size_of::<u32>() as u64);
        let ordered = match self.files.contains_key(&files.ids) {
            true => has(&files.ids, FileKind::Flat, ids),
            false => rows.is_none_or(|rows| entry.rows == rows),
        };
        let row_crcs = entry.rows.checked_mul(size_of::<u32>() as u64);
        let has_row_crcs = !self.files.contains_key(&files.row_crc)
            || has(&files.row_crc, FileKind::Flat, row_crcs);
        if has(&files.rows, FileKind::Features, Some(bytes))
            && has(&files.crc, FileKind::Flat, crcs)
            && has_row_crcs
            && ordered
        {
            return Ok(());
        }
        Err(format!(
            "features `{name}` of {} rows, whose files are missing or of other lengths",
            entry.rows
        ))
    }
}
