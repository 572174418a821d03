//! The options of builds that Python passes as JSON, and their defaults.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use serde::Deserialize;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::Existing;
use tiergraph_format::features::FeatureType;
use tiergraph_format::manifest::Codec;
use tiergraph_ingest::EdgeSource;
use tiergraph_ingest::build::{
    Assembly, BuildOptions, BuildReport, Direction, Duplicates, Ids, OrderChoice, Purpose,
    SelfLoops, assemble,
};
use tiergraph_ingest::features::Attachments;

use crate::calls::Call;

/// The options of `tiergraph.build` and `tiergraph.generate`; those not given have their defaults.
#[derive(Clone, Deserialize)]
pub(crate) struct Options {
    pub(crate) memory: Option<u64>,
    pub(crate) threads: Option<usize>,
    pub(crate) undirected: Option<bool>,
    dedup: Option<bool>,
    drop_self_loops: Option<bool>,
    ids: Option<Ids>,
    vertices: Option<u64>,
    rows: Option<u64>,
    order: Option<OrderChoice>,
    codec: Option<Codec>,
    layouts: Option<Purpose>,
    stripe: Option<Vec<PathBuf>>,
    scratch: Option<PathBuf>,
    block_bytes: Option<u64>,
    overwrite: Option<bool>,
    /// The type in which a generator's features are stored.
    pub(crate) feature_dtype: Option<FeatureType>,
}

impl Options {
    /// The number of threads: as many as asked for, or one for each core.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(cores)
    }

    fn build_options(&self, attachments: Attachments) -> Result<BuildOptions> {
        let given = self.clone();
        let defaults = BuildOptions::default();
        let block_bytes = given.block_bytes.map(block_bytes).transpose()?;
        Ok(BuildOptions {
            direction: match given.undirected {
                Some(true) => Direction::Undirected,
                Some(false) => Direction::Directed,
                None => defaults.direction,
            },
            duplicates: match given.dedup {
                Some(true) => Duplicates::Remove,
                Some(false) => Duplicates::Keep,
                None => defaults.duplicates,
            },
            self_loops: match given.drop_self_loops {
                Some(true) => SelfLoops::Remove,
                Some(false) => SelfLoops::Keep,
                None => defaults.self_loops,
            },
            ids: given.ids.unwrap_or(defaults.ids),
            vertices: given.vertices,
            rows: given.rows,
            order: given.order.unwrap_or(defaults.order),
            codec: given.codec.unwrap_or(defaults.codec),
            // Features are for samplers, who look up neighbours in both directions.
            purpose: given.layouts.unwrap_or(match attachments.is_empty() {
                true => defaults.purpose,
                false => Purpose::Both,
            }),
            stripes: given.stripe.unwrap_or(defaults.stripes),
            scratch: given.scratch,
            block_bytes: block_bytes.unwrap_or(defaults.block_bytes),
            overwrite: match given.overwrite {
                Some(true) => Existing::Replace,
                Some(false) | None => Existing::Refuse,
            },
            memory: given.memory,
            process_bytes: PROCESS_BYTES,
            threads: self.threads(),
            attachments,
            ..defaults
        })
    }
}

/// Bytes that a building process takes beside the interpreter and what the build reserves: code, stacks,
/// buffers of files.
const PROCESS_BYTES: u64 = 24 << 20;

/// The number of the machine's cores.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Builds the graph `path` from `source`, with `options` and with the `attachments` of its vertices.
pub(crate) fn write(
    source: &mut dyn EdgeSource,
    path: &Path,
    options: &Options,
    attachments: Attachments,
    call: &Call,
) -> Result<BuildReport> {
    write_assembly(source, path, options, attachments, call)?.commit()
}

/// Writes the graph that [`write`] does, but leaves it to the caller to commit it.
pub(crate) fn write_assembly(
    source: &mut dyn EdgeSource,
    path: &Path,
    options: &Options,
    attachments: Attachments,
    call: &Call,
) -> Result<Assembly> {
    assemble(source, path, &options.build_options(attachments)?, call, &call.cancel)
}

fn block_bytes(bytes: u64) -> Result<u32> {
    u32::try_from(bytes).map_err(|_| {
        Error::new(ErrorKind::Input, "build with blocks of")
            .object(bytes)
            .expected("a multiple of 4096 up to 1 GiB")
    })
}
