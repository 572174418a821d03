//! Neighbour lists in device memory, in pinned host memory, or on storage.

use tiergraph_core::Result;
use tiergraph_format::rows::{RowsPage, check_page, damaged_list};
use tiergraph_gpu::kernels::{LIST_NOT_RESIDENT, Neighbors, SplitLists};
use tiergraph_gpu::{DeviceBuf, MappedMemory, Stream};
use tiergraph_graph::{Direction, Graph, PageReader};
use tiergraph_mem::{PAGE_BYTES, Reservation};

use crate::residency::neighbors::Residency;
use crate::residency::offsets::Offsets;
use crate::residency::topology::Topology;

/// Neighbours that are copied to device memory together.
const PIECE: usize = 1 << 20;
/// Pages that are read together where lists are not in the host's memory, and reads in flight for them.
const PAGES: u64 = 1 << 6;
const READS: usize = 4;

/// The memory that a list is placed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Device memory.
    Device,
    /// Pinned host memory.
    Host,
    /// None: its pages are read for each batch.
    Storage,
}

/// All neighbour lists of a graph in one direction, from which they are placed.
pub(super) struct AllLists<'g> {
    graph: &'g Graph,
    direction: Direction,
    topology: Topology,
    /// The index of each vertex's first neighbour, and the number of all neighbours.
    offsets: Vec<u64>,
}

impl<'g> AllLists<'g> {
    /// The lists of `graph` in one direction: in the host's memory, or left on their pages if they fit it no
    /// more than once.
    pub fn open(graph: &'g Graph, direction: Direction) -> Result<Self> {
        // Lists that are placed in host memory are there twice meanwhile.
        let twice = 2 * size_of::<u32>() as u64 * graph.manifest().arcs;
        let have_pages = graph.rows(direction).pages().is_some();
        let stay = have_pages && twice > graph.memory().budget().left();
        let keep = if stay { Residency::Nothing } else { Residency::Decoded };
        let topology = Topology::open(graph, direction, &keep)?;
        let offsets = match topology.offsets() {
            Offsets::Narrow(sums) => sums.iter().map(|&sum| u64::from(sum)).collect(),
            Offsets::Wide(sums) => sums.to_vec(),
        };
        Ok(Self { graph, direction, topology, offsets })
    }

    /// The index of each vertex's first neighbour, and the number of all neighbours.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Bytes of all lists.
    pub fn bytes(&self) -> u64 {
        self.offsets.last().map_or(0, |&arcs| arcs * size_of::<u32>() as u64)
    }

    /// The number of neighbours of `vertex`.
    pub fn degree(&self, vertex: u32) -> u64 {
        self.offsets[vertex as usize + 1] - self.offsets[vertex as usize]
    }

    /// The number of neighbours of each vertex.
    pub fn degrees(&self) -> impl Iterator<Item = u64> {
        self.offsets.windows(2).map(|ends| ends[1] - ends[0])
    }

    /// Bytes of the list of `vertex`.
    pub fn bytes_of(&self, vertex: u32) -> u64 {
        self.degree(vertex) * size_of::<u32>() as u64
    }

    /// Whether all lists are in the host's memory.
    pub fn are_in_memory(&self) -> bool {
        self.topology.decoded().is_some()
    }

    /// Copies all lists to device memory.
    pub fn on_device(&self, stream: &Stream) -> Result<Neighbors> {
        match self.topology.decoded() {
            Some(neighbors) => Ok(Neighbors::Device(stream.uploaded(neighbors)?)),
            None => {
                let neighbors = self.offsets.last().map_or(0, |&arcs| arcs as usize);
                let mut device = DeviceBuf::new(stream.device(), neighbors)?;
                let mut upload = Upload { stream, to: &mut device, copied: 0, piece: Vec::new() };
                self.each(|_, list| upload.push(list))?;
                upload.end()?;
                Ok(Neighbors::Device(device))
            }
        }
    }

    /// Copies all lists to pinned host memory, which is reserved.
    pub fn on_host(&self, stream: &Stream) -> Result<(Neighbors, Reservation)> {
        let (mut mapped, held) = self.pinned(stream, self.bytes())?;
        let mut at = 0;
        self.each(|_, list| {
            append(&mut mapped, &mut at, list);
            Ok(())
        })?;
        Ok((Neighbors::Host(mapped), held))
    }

    /// Copies lists to the memory that each is placed in; that of the host is reserved.
    pub fn split(&self, stream: &Stream, places: &[Place]) -> Result<(Neighbors, Reservation)> {
        let neighbors_in = |wanted: Place| -> u64 {
            let here = (0u32..).zip(places).filter(|&(_, &place)| place == wanted);
            here.map(|(vertex, _)| self.degree(vertex)).sum()
        };
        let [on_device, on_host] = [Place::Device, Place::Host].map(neighbors_in);
        let mut device = DeviceBuf::new(stream.device(), on_device as usize)?;
        let (mut mapped, held) = self.pinned(stream, on_host * size_of::<u32>() as u64)?;
        let (mut next_on_device, mut next_on_host) = (0, on_device);
        let location = (0u32..).zip(places).map(|(vertex, place)| {
            let next = match place {
                Place::Device => &mut next_on_device,
                Place::Host => &mut next_on_host,
                Place::Storage => return LIST_NOT_RESIDENT,
            };
            *next += self.degree(vertex);
            *next - self.degree(vertex)
        });
        let location: Vec<u64> = location.collect();
        if on_device + on_host > 0 {
            let (mut upload, mut at) =
                (Upload { stream, to: &mut device, copied: 0, piece: Vec::new() }, 0);
            self.each(|vertex, list| {
                match places[vertex as usize] {
                    Place::Device => upload.push(list)?,
                    Place::Host => append(&mut mapped, &mut at, list),
                    Place::Storage => {}
                }
                Ok(())
            })?;
            upload.end()?;
        }
        let location = stream.uploaded(&location)?;
        Ok((Neighbors::Split(SplitLists { device, host: mapped, location }), held))
    }

    /// The most bytes of the host's memory that copying lists takes while it lasts.
    pub fn reading_bytes(&self) -> u64 {
        match self.are_in_memory() {
            true => 0,
            false => PageReader::most_bytes(self.graph, READS) + PAGES * PAGE_BYTES as u64,
        }
    }

    /// Calls `visit(vertex, neighbours)` for the lists of all vertices that have neighbours, in ascending
    /// order; a list may come in several pieces.
    fn each(&self, mut visit: impl FnMut(u32, &[u32]) -> Result<()>) -> Result<()> {
        if let Some(neighbors) = self.topology.decoded() {
            let lists = (0u32..).zip(self.offsets.windows(2));
            return lists.filter(|(_, ends)| ends[0] < ends[1]).try_for_each(|(v, ends)| {
                visit(v, &neighbors[ends[0] as usize..ends[1] as usize])
            });
        }
        let Some(rows) = self.graph.rows(self.direction).pages() else { return Ok(()) };
        let what = "reading the neighbours that are placed";
        let _held = self.graph.memory().reserve(self.reading_bytes(), what)?;
        let mut reader = PageReader::with_reads(self.graph, READS)?;
        let vertices = self.graph.vertices() as u64;
        let all = rows.index.len() as u64;
        let mut bytes = vec![0; PAGES as usize * PAGE_BYTES];
        let (mut wide, mut list) = (Vec::new(), Vec::new());
        for first in (0..all).step_by(PAGES as usize) {
            let numbers: Vec<u64> = (first..all.min(first + PAGES)).collect();
            reader.read(
                rows.file,
                &numbers,
                || Ok(false),
                |number, page| {
                    check_page(page, &rows.name, number, rows.salt)?;
                    let at = (number - first) as usize * PAGE_BYTES;
                    bytes[at..at + PAGE_BYTES].copy_from_slice(page);
                    Ok(())
                },
            )?;
            for page in bytes.chunks_exact(PAGE_BYTES).take(numbers.len()) {
                let page = RowsPage::parse(page)?;
                for vertex in page.vertices() {
                    wide.clear();
                    page.neighbors(vertex, &mut wide)?;
                    if vertex >= vertices || wide.iter().any(|&neighbor| neighbor >= vertices) {
                        return Err(damaged_list(vertex as u32));
                    }
                    list.clear();
                    list.extend(wide.iter().map(|&neighbor| neighbor as u32));
                    if !list.is_empty() {
                        visit(vertex as u32, &list)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Pinned host memory of `bytes` for lists, and its reservation.
    fn pinned(&self, stream: &Stream, bytes: u64) -> Result<(MappedMemory, Reservation)> {
        let held = self.graph.memory().reserve(bytes, "the neighbours in pinned memory")?;
        Ok((MappedMemory::zeroed(stream.device(), bytes as usize)?, held))
    }
}

/// Neighbours on their way to device memory, one behind the other.
struct Upload<'a> {
    stream: &'a Stream,
    to: &'a mut DeviceBuf<u32>,
    copied: usize,
    piece: Vec<u32>,
}

impl Upload<'_> {
    fn push(&mut self, list: &[u32]) -> Result<()> {
        self.piece.extend_from_slice(list);
        if self.piece.len() >= PIECE { self.end() } else { Ok(()) }
    }

    fn end(&mut self) -> Result<()> {
        self.stream.upload_at(self.to, self.copied, &self.piece)?;
        self.copied += self.piece.len();
        self.piece.clear();
        Ok(())
    }
}

/// Copies a list to place number `at` of pinned memory, which moves behind it.
fn append(mapped: &mut MappedMemory, at: &mut usize, list: &[u32]) {
    let bytes: &[u8] = bytemuck::cast_slice(list);
    mapped.bytes_mut()[*at * size_of::<u32>()..][..bytes.len()].copy_from_slice(bytes);
    *at += list.len();
}
