//! Launches of `sample.cu`: k-hop neighbour sampling, bit for bit as the CPU does it.

mod batch;

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::{Error, ErrorKind, Result};

use super::Source;
use super::parts::{BY_PARTS, Listing, Parts};
use super::rows::{StoredArguments, StoredLists, of_stored};
use crate::shared::{Shared, shared};
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};
pub use batch::{
    BatchOutputs, LINE_BYTES, LIST_NOT_RESIDENT, ListUse, Lists, Neighbors, Request, Sampled,
    SplitLists, list_transactions,
};

const THREADS: u32 = 256;
const SUM_THREADS: u32 = 1024;
/// Items whose sums one thread block makes.
const TILE: usize = 1024;
/// Blocks that read neighbours in host memory, where they wait for the link: with four they come hardly sooner, and
/// training takes longer. Measured: bench/runs/2026-11-27-h200-16-core-128gib/gpu_host_memory.txt.
const LINK_BLOCKS: u32 = 2;
/// Bytes of lists in host memory above which a hop's edges are listed by parts of it: a GPU keeps the
/// translations of fewer addresses. Measured: bench/runs/2026-11-27-h200-16-core-128gib/gpu_host_memory.txt.
const LISTED_ABOVE: usize = 128 << 20;
/// A batch has fewer nodes and edges than this.
const MOST: usize = 1 << 31;

shared! {
    struct GraphArguments as "Graph" {
        offsets: DevicePtr<u64>,
        neighbors: DevicePtr<u32>,
        host_neighbors: DevicePtr<u32>,
        location: DevicePtr<u64>,
        device_neighbors: u64,
        stored: StoredArguments,
    }
}

impl GraphArguments {
    fn of(lists: &Lists) -> Self {
        let offsets = lists.offsets.ptr();
        let stored = lists.stored.as_ref().map_or(StoredArguments::NONE, StoredLists::arguments);
        let in_one = |neighbors, host_neighbors| Self {
            offsets,
            neighbors,
            host_neighbors,
            location: DevicePtr::NULL,
            device_neighbors: 0,
            stored,
        };
        match &lists.neighbors {
            Neighbors::Device(neighbors) => in_one(neighbors.ptr(), DevicePtr::NULL),
            Neighbors::Host(neighbors) => in_one(DevicePtr::NULL, neighbors.ptr()),
            Neighbors::Split(split) => Self {
                offsets,
                neighbors: split.device.ptr(),
                host_neighbors: split.host.ptr(),
                location: split.location.ptr(),
                device_neighbors: split.device.len() as u64,
                stored,
            },
        }
    }
}

shared! {
    struct HopArguments as "Hop" {
        graph: GraphArguments,
        sizes: DevicePtr<Sizes>,
        n_id: DevicePtr<u32>,
        row: DevicePtr<u32>,
        col: DevicePtr<u32>,
        e_id: DevicePtr<u64>,
        neighbor: DevicePtr<u32>,
        local_id: DevicePtr<u32>,
        ranks: DevicePtr<u32>,
        sums: DevicePtr<u32>,
        ends: DevicePtr<u32>,
        by_list: DevicePtr<ListUse>,
        from_host: DevicePtr<u64>,
        key: [u32; 2],
        batch: u32,
        hop: u32,
        fanout: u32,
        tiles: u32,
        part_log2: u32,
        reserved: u32,
    }
}

shared! {
    struct ExportArguments as "Export" {
        n_id: DevicePtr<u32>,
        row: DevicePtr<u32>,
        col: DevicePtr<u32>,
        e_id: DevicePtr<u64>,
        positions: DevicePtr<u32>,
        places: DevicePtr<u32>,
        offsets: DevicePtr<u64>,
        nodes: DevicePtr<i64>,
        degree: DevicePtr<i64>,
        edges: DevicePtr<i64>,
        arcs: DevicePtr<i64>,
        input_id: DevicePtr<i64>,
        node_count: u32,
        edge_count: u32,
        place_count: u32,
        reserved: u32,
    }
}

shared! {
    struct UsesArguments as "Uses" {
        sizes: DevicePtr<Sizes>,
        n_id: DevicePtr<u32>,
        uses: DevicePtr<u32>,
    }
}

/// How many nodes and edges a batch has so far, as kernels count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Sizes {
    begin: u32,
    end: u32,
    first_edge: u32,
    end_edge: u32,
}

impl Shared for Sizes {
    const CUDA: &'static str = "Sizes";
    const FIELDS: &'static [(&'static str, usize)] = &[
        ("begin", offset_of!(Self, begin)),
        ("end", offset_of!(Self, end)),
        ("first_edge", offset_of!(Self, first_edge)),
        ("end_edge", offset_of!(Self, end_edge)),
    ];
}

struct Kernels {
    start: Kernel,
    count: Kernel,
    sum: Kernel,
    choose: Kernel,
    listing: Listing,
    fetch: Kernel,
    fetch_listed: Kernel,
    decode: Kernel,
    claim: Kernel,
    mark: Kernel,
    number: Kernel,
    look_up: Kernel,
    forget: Kernel,
    export: Kernel,
    count_uses: Kernel,
}

pub(super) fn source() -> Source {
    let mut source = of_stored("sample", &[BY_PARTS, include_str!("sample.cu")])
        .sharing::<ListUse>()
        .sharing::<GraphArguments>()
        .sharing::<Sizes>()
        .sharing::<HopArguments>()
        .sharing::<ExportArguments>()
        .sharing::<UsesArguments>();
    source.options.push(format!("-DLINE_BYTES={LINE_BYTES}"));
    source
}

impl Kernels {
    fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self {
            start: module.kernel("start")?,
            count: module.kernel("count")?,
            sum: module.kernel("sum")?,
            choose: module.kernel("choose")?,
            listing: Listing::new(&module, "edges")?,
            fetch: module.kernel("fetch")?,
            fetch_listed: module.kernel("fetch_listed")?,
            decode: module.kernel("decode")?,
            claim: module.kernel("claim")?,
            mark: module.kernel("mark")?,
            number: module.kernel("number")?,
            look_up: module.kernel("look_up")?,
            forget: module.kernel("forget")?,
            export: module.kernel("export_batch")?,
            count_uses: module.kernel("count_uses")?,
        })
    }
}

/// Samples batches on a device, one after the other; holds the arrays of the last one.
pub struct Sampler {
    kernels: Kernels,
    /// Each vertex's index among the batch's nodes; all ones for vertices that are not in the batch.
    local_id: DeviceBuf<u32>,
    /// The last batch's seeds, then the place of each in the caller's list, if those are wanted.
    seeds: DeviceBuf<u32>,
    sizes: DeviceBuf<Sizes>,
    n_id: DeviceBuf<u32>,
    /// The nodes of the batch before, or memory for those of the next one.
    other_n_id: DeviceBuf<u32>,
    edges: Edges,
    /// The edges of a hop whose neighbours are in host memory, by parts of that.
    parts: Parts,
    arcs: u64,
}

/// The arrays of a batch that have an entry for each edge, or for each tile of edges or nodes.
struct Edges {
    row: DeviceBuf<u32>,
    col: DeviceBuf<u32>,
    e_id: DeviceBuf<u64>,
    neighbor: DeviceBuf<u32>,
    ranks: DeviceBuf<u32>,
    sums: DeviceBuf<u32>,
}

impl Edges {
    fn new(device: &Device, edges: usize, nodes: usize) -> Result<Self> {
        let tiles = edges.max(nodes).div_ceil(TILE);
        Ok(Self {
            row: DeviceBuf::new(device, edges)?,
            col: DeviceBuf::new(device, edges)?,
            e_id: DeviceBuf::new(device, edges)?,
            neighbor: DeviceBuf::new(device, edges)?,
            ranks: DeviceBuf::new(device, tiles * TILE)?,
            sums: DeviceBuf::new(device, tiles)?,
        })
    }
}

/// The number of vertices that any sampler has room to select; fewer in a graph that has fewer.
pub const SELECTED: usize = 1 << 16;

/// The most nodes and edges that `seeds` and `fanouts` can give.
fn bounds(seeds: usize, fanouts: &[u32], vertices: usize, arcs: u64) -> (usize, usize) {
    let (mut frontier, mut nodes, mut edges) = (seeds as u64, seeds as u64, 0u64);
    for &fanout in fanouts {
        // A vertex is expanded once a hop, but seeds may repeat.
        let found = frontier.saturating_mul(fanout.into()).min(arcs.saturating_mul(seeds as u64));
        edges = edges.saturating_add(found);
        frontier = found.min(vertices as u64);
        nodes = nodes.saturating_add(frontier);
    }
    (nodes.min((vertices + seeds) as u64) as usize, edges.min(MOST as u64) as usize)
}

impl Sampler {
    /// A sampler for batches of up to `seeds` seeds and these fanouts, from a graph of so many `arcs`.
    ///
    /// # Errors
    /// Fanouts whose batches could have 2³¹ edges, not enough device memory, no compiler.
    pub fn new(
        stream: &Stream,
        lists: &Lists,
        seeds: usize,
        fanouts: &[u32],
        arcs: u64,
    ) -> Result<Self> {
        let device = stream.device();
        let vertices = lists.offsets.len().saturating_sub(1);
        let (nodes, edges) = bounds(seeds, fanouts, vertices, arcs);
        if edges >= MOST {
            return Err(Error::new(ErrorKind::Input, "sample on the GPU with the fanouts")
                .object(format!("{fanouts:?}"))
                .expected(format!("batches of fewer than {MOST} edges"))
                .hint("use smaller fanouts or a smaller batch, or `--device cpu`"));
        }
        let mut local_id = DeviceBuf::new(device, vertices)?;
        stream.fill_bytes(&mut local_id, 0xff)?;
        let selected = nodes.max(vertices.min(SELECTED));
        Ok(Self {
            kernels: Kernels::new(device)?,
            local_id,
            seeds: DeviceBuf::new(device, 2 * seeds)?,
            sizes: DeviceBuf::new(device, fanouts.len() + 2)?,
            n_id: DeviceBuf::new(device, selected)?,
            other_n_id: DeviceBuf::new(device, selected)?,
            edges: Edges::new(device, edges, nodes)?,
            parts: Parts::new(device)?,
            arcs,
        })
    }

    /// A sampler that only [`select`](Self::select)s, with room for `nodes` vertices.
    ///
    /// # Errors
    /// Not enough device memory, no compiler.
    pub fn of_selections(device: &Device, nodes: usize) -> Result<Self> {
        Ok(Self {
            kernels: Kernels::new(device)?,
            local_id: DeviceBuf::new(device, 0)?,
            seeds: DeviceBuf::new(device, 0)?,
            sizes: DeviceBuf::new(device, 1)?,
            n_id: DeviceBuf::new(device, nodes)?,
            other_n_id: DeviceBuf::new(device, nodes)?,
            edges: Edges::new(device, 0, 0)?,
            parts: Parts::new(device)?,
            arcs: 0,
        })
    }

    /// Bytes of device memory that a sampler for such batches takes.
    pub fn device_bytes(vertices: usize, seeds: usize, fanouts: &[u32], arcs: u64) -> u64 {
        let (nodes, edges) = bounds(seeds, fanouts, vertices, arcs);
        let selected = nodes.max(vertices.min(SELECTED));
        4 * (vertices + 2 * selected + 2 * seeds) as u64
            + 24 * edges as u64
            + 5 * nodes.max(edges) as u64
            + Parts::BYTES as u64
    }

    /// Samples a batch, and waits for its sizes. The seeds are below |V|. `and_then` may submit further
    /// work on the batch's nodes to the stream, which is waited for too.
    ///
    /// Pages of lists on storage are waited for, hop by hop.
    ///
    /// # Errors
    /// Any error of the driver, or of a page that is read.
    ///
    /// # Panics
    /// If there are more seeds or larger fanouts than the sampler was made for, or arrays of counts that
    /// are too short.
    pub fn sample(
        &mut self,
        stream: &Stream,
        lists: &mut Lists,
        request: &Request<'_>,
        and_then: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<Sampled> {
        let places = request.places;
        assert!(request.seeds.len() <= self.seeds.len() / 2, "no more seeds than it is for");
        assert!(places.is_empty() || places.len() == request.seeds.len(), "a place a seed");
        assert!(request.fanouts.len() + 2 <= self.sizes.len(), "no more hops than it is for");
        assert!(request.by_list.is_none_or(|uses| uses.len() >= self.local_id.len()));
        assert!(request.from_host.is_none_or(|counts| counts.len() >= 2));
        stream.upload(&mut self.seeds, &[request.seeds, places].concat())?;
        let mut hop = self.arguments(lists, request);
        let (seeds, count) = (self.seeds.ptr(), request.seeds.len());
        let number = count as u32;
        let each = Grid::over(count, THREADS);
        // SAFETY: the parameters of `start`; `n_id` has room for the seeds.
        unsafe { self.kernels.start.launch(stream, each, &[&hop, &seeds, &number])? };
        stream.copy_value(&mut self.sizes, 0, 1)?;
        let vertices = self.local_id.len();
        let mut frontier = count;
        for (number, &fanout) in request.fanouts.iter().enumerate() {
            (hop.hop, hop.fanout) = (number as u32, fanout);
            let (_, edges) = bounds(frontier, &[fanout], vertices, self.arcs);
            let edges = edges.min(self.edges.row.len());
            self.hop(stream, lists.stored.as_mut(), hop, frontier, edges)?;
            stream.copy_value(&mut self.sizes, 0, number + 2)?;
            frontier = edges.min(vertices);
        }
        let forget = Grid::over(self.n_id.len(), THREADS);
        // SAFETY: the parameter of `forget`, which goes over the batch's nodes.
        unsafe { self.kernels.forget.launch(stream, forget, &[&hop])? };
        and_then(self)?;
        let sizes = stream.download(&self.sizes, request.fanouts.len() + 2)?;
        lists.stored.as_mut().map_or(Ok(()), |stored| stored.check(stream))?;
        Ok(sampled(&sizes[1..]))
    }

    /// Makes a batch of `vertices` alone, without sampling. [`n_id`](Self::n_id) grows where there are
    /// more than it has room for.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn select(&mut self, stream: &Stream, vertices: &[u32]) -> Result<Sampled> {
        if vertices.len() > self.n_id.len() {
            self.n_id = DeviceBuf::new(stream.device(), vertices.len().next_power_of_two())?;
        }
        stream.upload(&mut self.n_id, vertices)?;
        let all = Sizes { end: vertices.len() as u32, ..Sizes::default() };
        stream.upload(&mut self.sizes, &[all])?;
        Ok(sampled(&[all]))
    }

    fn arguments(&self, lists: &Lists, request: &Request<'_>) -> HopArguments {
        HopArguments {
            graph: GraphArguments::of(lists),
            sizes: self.sizes.ptr(),
            n_id: self.n_id.ptr(),
            row: self.edges.row.ptr(),
            col: self.edges.col.ptr(),
            e_id: self.edges.e_id.ptr(),
            neighbor: self.edges.neighbor.ptr(),
            local_id: self.local_id.ptr(),
            ranks: self.edges.ranks.ptr(),
            sums: self.edges.sums.ptr(),
            ends: self.parts.ends(),
            by_list: request.by_list.map_or(DevicePtr::NULL, DeviceBuf::ptr),
            from_host: match lists.neighbors {
                Neighbors::Device(_) => DevicePtr::NULL,
                Neighbors::Host(_) | Neighbors::Split(_) => {
                    request.from_host.map_or(DevicePtr::NULL, DeviceBuf::ptr)
                }
            },
            key: request.key,
            batch: request.batch,
            hop: 0,
            fanout: 0,
            tiles: 0,
            part_log2: match &lists.neighbors {
                Neighbors::Host(host) | Neighbors::Split(SplitLists { host, .. })
                    if host.bytes() > LISTED_ABOVE =>
                {
                    Parts::part_log2(host.bytes() / size_of::<u32>())
                }
                _ => 0,
            },
            reserved: 0,
        }
    }

    /// One hop, of at most `frontier` nodes that give at most `edges` edges.
    fn hop(
        &mut self,
        stream: &Stream,
        stored: Option<&mut StoredLists<'_>>,
        hop: HopArguments,
        frontier: usize,
        edges: usize,
    ) -> Result<()> {
        let kernels = &self.kernels;
        let tiles = |items: usize| HopArguments { tiles: items.div_ceil(TILE) as u32, ..hop };
        let (nodes, found) = (tiles(frontier), tiles(edges));
        let scan = |of: &HopArguments| Grid { blocks: of.tiles, threads: THREADS };
        let one = Grid { blocks: 1, threads: SUM_THREADS };
        let (each_node, each_edge) = (Grid::over(frontier, THREADS), Grid::over(edges, THREADS));
        let launch = |kernel: &Kernel, grid: Grid, of: &HopArguments| {
            // SAFETY: the parameter of these kernels; arrays are as long as `bounds` of the request.
            unsafe { kernel.launch(stream, grid, &[of]) }
        };
        let sum = |of: &HopArguments, new_nodes: u32| {
            // SAFETY: the parameters of `sum`, which reads `tiles` sums.
            unsafe { kernels.sum.launch(stream, one, &[of, &new_nodes]) }
        };
        launch(&kernels.count, scan(&nodes), &nodes)?;
        sum(&nodes, 0)?;
        launch(&kernels.choose, each_node, &nodes)?;
        if hop.graph.host_neighbors.address() != 0 {
            let few = Grid { blocks: each_edge.blocks.min(LINK_BLOCKS), threads: THREADS };
            if hop.part_log2 == 0 {
                launch(&kernels.fetch, few, &found)?;
            } else {
                let most = 8 * stream.device().multiprocessors();
                kernels.listing.list(stream, &mut self.parts, edges, most, |kernel, grid| {
                    // SAFETY: the parameter of these kernels; there are as many ranks as edges.
                    unsafe { kernel.launch(stream, grid, &[&found]) }
                })?;
                launch(&kernels.fetch_listed, few, &found)?;
            }
        }
        if let Some(stored) = stored {
            let count = stored.wanted(stream)?;
            stored.bring(stream, count, |decoding| {
                // SAFETY: the parameters of `decode`; the hop wants pages that it says the numbers of.
                unsafe { kernels.decode.launch(stream, each_edge, &[&found, decoding]) }
            })?;
            stored.forget(stream, count)?;
        }
        launch(&kernels.claim, each_edge, &found)?;
        launch(&kernels.mark, scan(&found), &found)?;
        sum(&found, 1)?;
        launch(&kernels.number, each_edge, &found)?;
        launch(&kernels.look_up, each_edge, &found)
    }

    /// The vertex of each node of the last batch. The buffer is longer: only the batch's nodes count.
    pub fn n_id(&self) -> &DeviceBuf<u32> {
        &self.n_id
    }

    /// Has the next batch's nodes written to other memory than the last one's, which stay where they are
    /// until this is called again.
    pub fn keep_n_id(&mut self) {
        std::mem::swap(&mut self.n_id, &mut self.other_n_id);
    }

    /// The pointer to the number of the last batch's nodes, which the device counts.
    pub(super) fn nodes_ptr(&self) -> DevicePtr<u32> {
        self.sizes.ptr().field(offset_of!(Sizes, end))
    }

    /// The arc number of each of the last batch's edges. The buffer is longer: only those edges count.
    pub fn e_id(&self) -> &DeviceBuf<u64> {
        &self.edges.e_id
    }

    /// Adds 1 to the count in `uses` of each vertex that is a node of the last batch.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If `uses` does not have a count for each vertex.
    pub fn count_uses(&self, stream: &Stream, uses: &mut DeviceBuf<u32>) -> Result<()> {
        assert_eq!(uses.len(), self.local_id.len(), "a count a vertex");
        let arguments =
            UsesArguments { sizes: self.sizes.ptr(), n_id: self.n_id.ptr(), uses: uses.ptr() };
        let grid = Grid::over(self.n_id.len(), THREADS);
        // SAFETY: `Uses` of the source; nodes are vertices.
        unsafe { self.kernels.count_uses.launch(stream, grid, &[&arguments]) }
    }

    /// Writes the last batch to `to`, in the types that PyG takes.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If the arrays of `to` do not have the batch's lengths.
    pub fn export(&self, stream: &Stream, sampled: &Sampled, to: &BatchOutputs<'_>) -> Result<()> {
        let (nodes, edges) = (sampled.nodes(), sampled.edges());
        assert_eq!((to.nodes.len(), to.edge_index.len(), to.e_id.len()), (nodes, 2 * edges, edges));
        let places = to.input_id.len();
        assert!(places <= sampled.num_sampled_nodes[0] && 2 * places <= self.seeds.len());
        let (offsets, degree) = match &to.degree {
            Some((offsets, degree)) => {
                assert!(offsets.len() > self.local_id.len() && degree.len() == nodes);
                (offsets.ptr(), degree.ptr())
            }
            None => (DevicePtr::NULL, DevicePtr::NULL),
        };
        let arguments = ExportArguments {
            n_id: self.n_id.ptr(),
            row: self.edges.row.ptr(),
            col: self.edges.col.ptr(),
            e_id: self.edges.e_id.ptr(),
            positions: to.positions.map_or(DevicePtr::NULL, DeviceBuf::ptr),
            places: self.seeds.ptr().offset(places),
            offsets,
            nodes: to.nodes.ptr(),
            degree,
            edges: to.edge_index.ptr(),
            arcs: to.e_id.ptr(),
            input_id: to.input_id.ptr(),
            node_count: nodes as u32,
            edge_count: edges as u32,
            place_count: places as u32,
            reserved: 0,
        };
        let most = 8 * stream.device().multiprocessors();
        let whole = Grid::over(nodes.max(edges), THREADS).blocks;
        let grid = Grid { blocks: whole.min(most), threads: THREADS };
        // SAFETY: `Export` of the source, with lengths as asserted.
        unsafe { self.kernels.export.launch(stream, grid, &[&arguments]) }
    }
}

/// The batch whose sizes before the first hop and after each hop are `sizes`.
fn sampled(sizes: &[Sizes]) -> Sampled {
    let mut sampled = Sampled::default();
    let mut before = Sizes::default();
    for (i, now) in sizes.iter().enumerate() {
        sampled.num_sampled_nodes.push((now.end - before.end) as usize);
        if i > 0 {
            sampled.num_sampled_edges.push((now.end_edge - before.end_edge) as usize);
        }
        before = *now;
    }
    sampled
}
