//! Launches of programs over blocks: `edge_map_raw.cu`, `edge_map_tiles.cu`.

use bytemuck::{Pod, Zeroable, bytes_of};
use tiergraph_core::Result;

use super::survey::{Segment, Slices};
use super::{Blocks, Source, TILES, TYPES};
use crate::{Device, DeviceBuf, Grid, Kernel, Module, Stream};

const SHUFFLE: &str = include_str!("shuffle.cuh");
const RAW: &str = include_str!("edge_map_raw.cu");
const PACKED: &str = include_str!("edge_map_tiles.cu");

const THREADS: u32 = 256;
/// Arcs of a thread block, in `edge_map_raw.cu`.
const CHUNK: usize = 2048;
/// Bytes of a raw block's header.
const HEADER: usize = 64;

/// What a pass does with arcs: a `struct Program` in CUDA, and its parameters here.
pub trait Program: Pod + Sync {
    /// Its name in messages.
    const NAME: &'static str;
    /// Its CUDA C++.
    const SOURCE: &'static str;
    /// Whether it sees both directions of an edge that is stored once by itself.
    const SYMMETRIC: bool = false;
}

macro_rules! program {
    ($(#[$doc:meta])* $name:ident, $text:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* } $($symmetric:ident)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Pod, Zeroable)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl Program for $name {
            const NAME: &'static str = $text;
            const SOURCE: &'static str = include_str!(concat!("programs/", $text, ".cuh"));
            $(const SYMMETRIC: bool = $symmetric();)?
        }
    };
}

const fn symmetric() -> bool {
    true
}

program! {
    /// `y[row] += Σ x[column]`, float32 summed in float64.
    Sum, "sum" {
        /// Address of x, a value a vertex.
        x: u64,
        /// Address of y.
        y: u64,
    }
}
program! {
    /// Joins the trees of an arc's ends.
    Join, "join" {
        /// Address of the parents, u32 a vertex.
        parent: u64,
    } symmetric
}
program! {
    /// Gives the unvisited neighbours of the vertices at a level the next.
    Level, "level" {
        /// Address of the depths, u32 a vertex.
        depth: u64,
        /// Address of a flag for every `2^log2` vertices that were reached.
        reached: u64,
        /// Address of a count of vertices that were reached.
        count: u64,
        /// The level.
        level: u32,
        /// Of the flags.
        log2: u32,
    }
}
program! {
    /// Lowers distances along arcs.
    Relax, "relax" {
        /// Address of the distances, f64 a vertex.
        distance: u64,
        /// Address of a flag for every `2^log2` vertices whose distance fell.
        lowered: u64,
        /// Address of a count of falls.
        count: u64,
        /// Of the flags.
        log2: u32,
        /// Zero.
        unused: u32,
    }
}

/// What the bytes of blocks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Plain ids of 4 or 8 bytes.
    Raw {
        /// 4 or 8.
        id_bytes: u32,
    },
    /// Packed tiles.
    Tiles {
        /// Whether undirected edges are stored once.
        stored_once: bool,
    },
}

/// Where the blocks are that a kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tier {
    /// In device memory to stay.
    Resident,
    /// In batches that stream in.
    Streamed,
}

/// The source of a program over a layout.
fn source<P: Program>(layout: Layout, weight_bytes: u32, tier: Tier) -> Source {
    let (name, includes, text) = match layout {
        Layout::Raw { .. } => ("raw", SHUFFLE, RAW),
        Layout::Tiles { .. } => ("tiles", TILES, PACKED),
    };
    let mut source =
        Source::new(format!("{}-{name}", P::NAME), &[TYPES, includes, P::SOURCE, text]);
    source.options.push(format!("-DWEIGHT_BYTES={weight_bytes}"));
    if tier == Tier::Resident {
        source.options.push("-DRESIDENT".into());
    }
    match layout {
        Layout::Raw { id_bytes } => source.options.push(format!("-DID_BYTES={id_bytes}")),
        Layout::Tiles { stored_once } if stored_once && !P::SYMMETRIC => {
            source.options.push("-DMIRROR".into());
        }
        Layout::Tiles { .. } => {}
    }
    source
}

pub(super) fn sources() -> Vec<Source> {
    fn of<P: Program>() -> Vec<Source> {
        let raw = [4, 8].map(|id_bytes| Layout::Raw { id_bytes });
        let tiles = [false, true].map(|stored_once| Layout::Tiles { stored_once });
        let mut sources = Vec::new();
        for layout in raw.into_iter().chain(tiles) {
            for tier in [Tier::Resident, Tier::Streamed] {
                sources.extend([0, 4, 8].map(|weights| source::<P>(layout, weights, tier)));
            }
        }
        sources
    }
    [of::<Sum>(), of::<Join>(), of::<Level>(), of::<Relax>()].concat()
}

/// A compiled program over one layout.
#[derive(Debug, Clone)]
pub struct EdgeMap<P> {
    resident: Kernel,
    streamed: Kernel,
    /// Thread blocks that the device holds at once.
    at_once: u32,
    program: std::marker::PhantomData<P>,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RawArguments {
    blocks: Blocks,
    chunks: u32,
    unused: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct TilesArguments {
    blocks: Blocks,
    segments: u64,
    slices: u64,
    count: u64,
    active: u64,
    number: u32,
    log2: u32,
    min_gap: u32,
    unused: u32,
}

/// A pass over slices of tiles.
#[derive(Debug, Clone, Copy)]
pub struct TilesPass<'a> {
    /// Where the blocks are.
    pub blocks: Blocks,
    /// All segments of the graph.
    pub segments: &'a DeviceBuf<Segment>,
    /// The slices.
    pub slices: Slices<'a>,
    /// A flag for every `2^columns_log2` vertices; segments without an active one are skipped.
    pub active: Option<&'a DeviceBuf<u8>>,
    /// Of the tiles.
    pub columns_log2: u32,
    /// Of the tiles.
    pub min_gap: u32,
}

impl<P: Program> EdgeMap<P> {
    /// Compiles `P` for a layout whose weights have `weight_bytes` (0, 4, 8).
    ///
    /// # Errors
    /// No compiler, its log, whatever the driver gives.
    pub fn new(device: &Device, layout: Layout, weight_bytes: u32) -> Result<Self> {
        let compile = |tier| -> Result<Kernel> {
            let Source { name, text, options } = source::<P>(layout, weight_bytes, tier);
            Module::compile(device, &name, &text, &options)?.kernel("edge_map")
        };
        let (resident, streamed) = (compile(Tier::Resident)?, compile(Tier::Streamed)?);
        let at_once = resident.resident_blocks(THREADS)?;
        Ok(Self { resident, streamed, at_once, program: std::marker::PhantomData })
    }

    fn kernel(&self, blocks: Blocks) -> &Kernel {
        if blocks.are_resident() { &self.resident } else { &self.streamed }
    }

    /// Runs the program over raw blocks of `block_bytes` each.
    ///
    /// `blocks` holds whole raw blocks, and `program` vertex state for every vertex in them. Where
    /// that is not so, device memory is read or written out of place, which the driver reports or
    /// the result shows; host memory is out of a kernel's reach.
    ///
    /// # Errors
    /// Whatever the driver gives.
    pub fn raw(
        &self,
        stream: &Stream,
        blocks: Blocks,
        block_bytes: usize,
        program: &P,
    ) -> Result<()> {
        // A block that is full of ids, all of one vertex.
        let chunks = ((block_bytes - HEADER) / 4).div_ceil(CHUNK) as u32;
        let arguments = RawArguments { blocks, chunks, unused: 0 };
        let grid = Grid { blocks: blocks.count() * chunks, threads: THREADS };
        // SAFETY: the parameters are `Arguments` and `Program` of the source; see above.
        unsafe {
            self.kernel(blocks).launch(stream, grid, &[bytes_of(&arguments), bytes_of(program)])
        }
    }

    /// Runs the program over slices of tiles, which [`Survey`](super::Survey) listed from these
    /// segments in these blocks. `program` has vertex state for every row and column of a tile.
    ///
    /// # Errors
    /// As [`raw`](Self::raw).
    pub fn tiles(&self, stream: &Stream, pass: &TilesPass<'_>, program: &P) -> Result<()> {
        let (slices, count, number) = pass.slices.parts();
        let arguments = TilesArguments {
            blocks: pass.blocks,
            segments: pass.segments.address(),
            slices: slices.address(),
            count: count.map_or(0, DeviceBuf::address),
            active: pass.active.map_or(0, DeviceBuf::address),
            number,
            log2: pass.columns_log2,
            min_gap: pass.min_gap,
            unused: 0,
        };
        let whole = Grid::over(number as usize, THREADS / 32).blocks;
        let grid = Grid { blocks: whole.min(self.at_once), threads: THREADS };
        // SAFETY: the parameters are `Arguments` and `Program` of the source; see above.
        unsafe {
            self.kernel(pass.blocks).launch(
                stream,
                grid,
                &[bytes_of(&arguments), bytes_of(program)],
            )
        }
    }
}
