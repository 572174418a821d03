//! Launches of programs over blocks: `edge_map_{raw,rows,tiles}.cu`.

use tiergraph_core::Result;

use super::programs::{Fold, Join, Level, Panel, Program, Put, Relax, Sum};
use super::slice_index::{Segment, Slice, SliceIndex};
use super::{Blocks, Source, TILES, TYPES};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

const EVERY_ARC: &str = include_str!("programs/every_arc.cuh");
const RAW: &str = concat!(include_str!("shuffle.cuh"), include_str!("raw.cuh"));
const WHOLE: &str = include_str!("edge_map_raw.cu");
const ROWS: &str = include_str!("edge_map_rows.cu");
const PACKED: &str = include_str!("edge_map_tiles.cu");

const THREADS: u32 = 256;
/// Arcs of a thread block in `edge_map_raw.cu`, of a warp in `edge_map_rows.cu`.
const CHUNK: usize = 2048;
/// Chunks of a warp in `edge_map_rows.cu`.
const PART: u32 = 4;
/// Bytes of a raw block's header.
const HEADER: usize = 64;

/// How blocks store arcs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Lists of plain neighbour ids: codec `raw`.
    Raw {
        /// Bytes of an id: 4 or 8.
        id_bytes: u32,
    },
    /// Packed tiles: codec `packed`.
    Tiles {
        /// Whether the tiles hold one arc of each undirected edge, and not both.
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

/// The variant of a program that is compiled: for which layout and weights, and in which direction.
#[derive(Debug, Clone)]
pub struct Variant {
    /// How the blocks store arcs.
    pub layout: Layout,
    /// Bytes of a weight that the program reads: 4 or 8; 0 if it reads none.
    pub weight_bytes: u32,
    /// Whether messages go against the arcs: from a tile's rows to its columns.
    pub transposed: bool,
    /// Further options of the compiler, which the program asks for.
    pub options: Vec<String>,
}

impl Variant {
    /// The kernel's name, and its text behind what it includes.
    fn kernel<P: Program>(&self) -> (&'static str, [&'static str; 2]) {
        match self.layout {
            Layout::Raw { .. } if P::SELECTIVE => ("edge_map_rows", [RAW, ROWS]),
            Layout::Raw { .. } => ("edge_map_raw", [RAW, WHOLE]),
            Layout::Tiles { .. } => ("edge_map_tiles", [TILES, PACKED]),
        }
    }

    fn source<P: Program>(&self, tier: Tier) -> Source {
        let (kernel, [includes, text]) = self.kernel::<P>();
        let mut source = Source::new(
            format!("{kernel}-{}", P::NAME),
            &[TYPES, includes, EVERY_ARC, P::SOURCE, text],
        )
        .sharing::<Blocks>()
        .sharing::<P>();
        source = match self.layout {
            Layout::Raw { .. } => source.sharing::<RawArguments>(),
            Layout::Tiles { .. } => source.sharing::<Segment>().sharing::<TilesArguments>(),
        };
        source.options.clone_from(&self.options);
        source.options.push(format!("-DWEIGHT_BYTES={}", self.weight_bytes));
        if tier == Tier::Resident {
            source.options.push("-DRESIDENT".into());
        }
        // More registers would let fewer warps run.
        if P::SELECTIVE {
            source.options.push("--maxrregcount=64".into());
        }
        match self.layout {
            Layout::Raw { id_bytes } => source.options.push(format!("-DID_BYTES={id_bytes}")),
            Layout::Tiles { stored_once: true } if P::SYMMETRIC => {}
            Layout::Tiles { stored_once: true } => source.options.push("-DMIRROR".into()),
            Layout::Tiles { stored_once: false } if self.transposed => {
                source.options.push("-DTRANSPOSED".into());
            }
            Layout::Tiles { stored_once: false } => {}
        }
        source
    }
}

/// The layouts, and whether each is gone over the other way too.
const LAYOUTS: [(Layout, bool); 5] = [
    (Layout::Raw { id_bytes: 4 }, false),
    (Layout::Raw { id_bytes: 8 }, false),
    (Layout::Tiles { stored_once: true }, false),
    (Layout::Tiles { stored_once: false }, false),
    (Layout::Tiles { stored_once: false }, true),
];

pub(super) fn sources() -> Vec<Source> {
    fn of<P: Program>(weights: &[u32], transposed: bool, options: &[String]) -> Vec<Source> {
        let mut sources = Vec::new();
        for (layout, transposed) in LAYOUTS.into_iter().filter(|&(_, t)| transposed || !t) {
            for &weight_bytes in weights {
                let variant =
                    Variant { layout, weight_bytes, transposed, options: options.to_vec() };
                let tiers = [Tier::Resident, Tier::Streamed];
                sources.extend(tiers.map(|tier| variant.source::<P>(tier)));
            }
        }
        sources
    }
    let mut sources = [
        of::<Sum>(&[0], false, &[]),
        of::<Join>(&[0], false, &[]),
        of::<Level>(&[0], false, &[]),
        of::<Put>(&[0], false, &[]),
        of::<Relax>(&[0, 4, 8], false, &[]),
    ]
    .concat();
    for panel in Panel::all() {
        sources.extend(of::<Fold<f32>>(&[0, 4, 8], true, &panel.options()));
    }
    sources
}

/// The compiled kernels of a program for one layout of blocks.
#[derive(Debug, Clone)]
pub struct EdgeMap<P> {
    resident: Kernel,
    streamed: Kernel,
    /// Thread blocks that the device holds at once.
    at_once: u32,
    program: std::marker::PhantomData<P>,
}

shared! {
    struct RawArguments as "Arguments" {
        blocks: Blocks,
        chunks: u32,
    }
}

shared! {
    struct TilesArguments as "Arguments" {
        blocks: Blocks,
        segments: DevicePtr<Segment>,
        slices: DevicePtr<Slice>,
        count: DevicePtr<u32>,
        active: DevicePtr<u8>,
        number: u32,
        log2: u32,
        min_gap: u32,
    }
}

/// The slices of tiles that a program goes over, and how they are decoded.
#[derive(Debug, Clone, Copy)]
pub struct TilesPass<'a> {
    /// The blocks that hold the slices.
    pub blocks: Blocks,
    /// All segments of the graph.
    pub segments: &'a DeviceBuf<Segment>,
    /// The slices that the program goes over.
    pub slices: SliceIndex<'a>,
    /// A flag for every `2^columns_log2` vertices, set if one of them is active: segments without an
    /// active vertex are skipped. `None` if all vertices are active.
    pub active: Option<&'a DeviceBuf<u8>>,
    /// The binary logarithm of the columns of a tile.
    pub columns_log2: u32,
    /// The least gap between two columns of a row, which kernels add to each gap that the tiles store.
    pub min_gap: u32,
}

impl<P: Program> EdgeMap<P> {
    /// Compiles the program for `device`.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device, variant: &Variant) -> Result<Self> {
        let compile = |tier| -> Result<Kernel> {
            variant.source::<P>(tier).compile(device)?.kernel(variant.kernel::<P>().0)
        };
        let (resident, streamed) = (compile(Tier::Resident)?, compile(Tier::Streamed)?);
        let at_once = resident.resident_blocks(THREADS)?;
        Ok(Self { resident, streamed, at_once, program: std::marker::PhantomData })
    }

    /// A warp an item, as far as the device holds them at once.
    fn at_most(&self, items: u32) -> Grid {
        Grid { blocks: items.div_ceil(THREADS / 32).min(self.at_once), threads: THREADS }
    }

    fn kernel(&self, blocks: Blocks) -> &Kernel {
        if blocks.are_resident() { &self.resident } else { &self.streamed }
    }

    /// Runs `program` over raw blocks of `block_bytes` each, in order with the stream.
    ///
    /// `blocks` holds whole raw blocks, and `program` state of every vertex in them. Where that is not
    /// so, other device memory is read or written, which the driver reports or the result shows; host
    /// memory is out of a kernel's reach.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn raw(
        &self,
        stream: &Stream,
        blocks: Blocks,
        block_bytes: usize,
        program: &P,
    ) -> Result<()> {
        // A block that is full of ids, all of one vertex.
        let chunks = ((block_bytes - HEADER) / 4).div_ceil(CHUNK) as u32;
        let arguments = RawArguments { blocks, chunks };
        let chunks = blocks.count() * chunks;
        let grid = match P::SELECTIVE {
            false => Grid { blocks: chunks, threads: THREADS },
            true => self.at_most(chunks.div_ceil(PART)),
        };
        // SAFETY: the parameters are `Arguments` and `Program` of the source; see above.
        unsafe { self.kernel(blocks).launch(stream, grid, &[&arguments, program]) }
    }

    /// Runs `program` over slices of tiles, which a [`SliceIndexer`](super::SliceIndexer) found in the
    /// pass's blocks, in order with the stream. `program` has state of every row and column of a tile.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn tiles(&self, stream: &Stream, pass: &TilesPass<'_>, program: &P) -> Result<()> {
        let (slices, count) = pass.slices.parts();
        let number = slices.len() as u32;
        let arguments = TilesArguments {
            blocks: pass.blocks,
            segments: pass.segments.ptr(),
            slices: slices.ptr(),
            count: count.map_or(DevicePtr::NULL, DeviceBuf::ptr),
            active: pass.active.map_or(DevicePtr::NULL, DeviceBuf::ptr),
            number,
            log2: pass.columns_log2,
            min_gap: pass.min_gap,
        };
        let grid = self.at_most(number);
        // SAFETY: the parameters are `Arguments` and `Program` of the source; see above.
        unsafe { self.kernel(pass.blocks).launch(stream, grid, &[&arguments, program]) }
    }
}
