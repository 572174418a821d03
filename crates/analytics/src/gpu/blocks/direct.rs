//! Blocks from storage straight to the device, by cuFile (RealGraphGPU++, "direct storage-to-DM IO").
//!
//! `cuFileRead` from many threads, each with slots of its own, is the simplest of cuFile's ways that
//! keeps a drive busy: a read is in flight a thread, whatever becomes of the others, and a blocked
//! thread costs no core. A read by `cuFileReadAsync` waits for what its stream was given before, so
//! that it would take a stream a read; the batch interface, which `cufile.h` calls experimental,
//! takes a loop over its completions, and saves calls that are nothing beside a read of 1 MiB.

use std::path::PathBuf;
use std::time::Instant;

use tiergraph_core::Result;
use tiergraph_gpu::kernels::Program;
use tiergraph_gpu::{CuFile, Device, DeviceBuf, DirectFile};
use tiergraph_graph::{DirectReader, Graph, Lane};

use super::slots::Computing;
use super::tables::Tables;

/// The stripes of a file of blocks, and the threads that read them.
pub(in crate::gpu) struct Direct {
    cufile: &'static CuFile,
    stripes: Vec<DirectFile>,
    reader: DirectReader,
    block_bytes: usize,
}

impl Direct {
    pub fn open(graph: &Graph, device: &Device, tables: &Tables, lanes: usize) -> Result<Self> {
        let cufile = CuFile::get(device)?;
        let open = |path: &PathBuf| DirectFile::open(cufile, device, path);
        let stripes = graph.block_paths(tables.file)?.iter().map(open).collect::<Result<_>>()?;
        let reader = DirectReader::new(lanes);
        Ok(Self { cufile, stripes, reader, block_bytes: tables.block_bytes })
    }

    pub fn cufile(&self) -> &'static CuFile {
        self.cufile
    }

    /// Which way bytes go.
    pub fn how(&self) -> String {
        let cached = self.stripes.iter().any(|file| !file.bypasses_cache());
        let cache = if cached { "; the file system refuses `O_DIRECT`" } else { "" };
        format!("{}{cache}", self.cufile.how())
    }

    /// Reads the first `blocks` to their places in memory that cuFile does not know: registering
    /// it costs more than the one read of each block gains.
    pub fn load(
        &self,
        graph: &Graph,
        arenas: &[DeviceBuf<u8>],
        (blocks, per_arena): (u32, u32),
    ) -> Result<()> {
        let place = |block: u32| {
            let at = (block % per_arena) as usize * self.block_bytes;
            (&arenas[(block / per_arena) as usize], at)
        };
        let loading = |lane| Loading { on: On { direct: self, graph, lane }, place: &place };
        let mut lanes: Vec<_> = (0..self.reader.lanes()).map(loading).collect();
        let wanted: Vec<u32> = (0..blocks).collect();
        self.reader.pass(graph, &wanted, &mut lanes)
    }

    /// Reads `blocks` into slots, and computes there.
    pub fn pass<'a, P: Program>(
        &'a self,
        graph: &'a Graph,
        blocks: &[u32],
        slots: impl Iterator<Item = Computing<'a, P>>,
    ) -> Result<()> {
        let lane = |(lane, slots)| Filling { on: On { direct: self, graph, lane }, slots };
        let mut lanes: Vec<_> = slots.enumerate().map(lane).collect();
        self.reader.pass(graph, blocks, &mut lanes)
    }
}

/// One lane's way to the files.
#[derive(Clone, Copy)]
struct On<'a> {
    direct: &'a Direct,
    graph: &'a Graph,
    lane: usize,
}

impl On<'_> {
    /// Reads `block` to byte `at` of `to`, and waits.
    fn read(&self, block: u32, (to, at): (&DeviceBuf<u8>, usize)) -> Result<()> {
        let (Direct { stripes, block_bytes, .. }, block) = (self.direct, block as usize);
        let (stripe, unit) = (&stripes[block % stripes.len()], block / stripes.len());
        let begin = Instant::now();
        stripe.read(to, at, *block_bytes, unit as u64 * *block_bytes as u64)?;
        self.graph.brought(self.lane, *block_bytes, begin);
        Ok(())
    }
}

/// A lane that brings blocks to their places.
struct Loading<'a, F> {
    on: On<'a>,
    place: &'a F,
}

impl<'a, F: Fn(u32) -> (&'a DeviceBuf<u8>, usize) + Sync> Lane for Loading<'a, F> {
    fn bring(&mut self, block: u32) -> Result<()> {
        self.on.read(block, (self.place)(block))
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A lane that fills slots, in which programs compute.
struct Filling<'a, P> {
    on: On<'a>,
    slots: Computing<'a, P>,
}

impl<P: Program> Lane for Filling<'_, P> {
    fn bring(&mut self, block: u32) -> Result<()> {
        let on = self.on;
        self.slots.fill(block, |to, at| on.read(block, (to, at)))
    }

    fn finish(&mut self) -> Result<()> {
        self.slots.compute()
    }
}
