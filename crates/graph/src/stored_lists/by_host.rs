//! Pages of neighbour lists that the host reads for kernels, by the graph's own engines.

use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tiergraph_core::{Error, Result, ThreadPool};
use tiergraph_format::rows::{check_page, damaged_list};
use tiergraph_gpu::kernels::{
    LIST_PAGE_BYTES, ListPages, ListReads, PiecePages, RowRequest, RowRequests,
};
use tiergraph_gpu::{Device, DeviceBuf, DeviceView, Stream};
use tiergraph_io::gpu_reads::PagedFile;
use tiergraph_mem::Reservation;

use crate::{Graph, PageReader};

/// Pages that are brought together.
const PIECE: usize = 1 << 10;
/// Reads in flight of a thread.
const READS: usize = 32;
/// The share of the host's memory, one part in so many, that buffers of further threads may take.
const THREADS_SHARE: u64 = 8;
/// The fewest pages for which a further thread is woken.
const LEAST_EACH: usize = 32;

/// The pages of a file of neighbour lists, as the host's threads read them: piece by piece, each to memory of
/// the host and from there to the device.
pub(super) struct PagesByHost<G> {
    graph: G,
    pages: PagedFile,
    threads: ThreadPool,
    /// A reader a thread.
    readers: Vec<Mutex<PageReader>>,
    /// The pages of a piece, at their targets.
    staging: Vec<u8>,
    place: DeviceBuf<u8>,
    brought: ListPages,
    _held: Reservation,
}

impl PagesByHost<()> {
    /// Bytes of device memory for pages on their way, of so many.
    pub fn device_bytes(pages: usize) -> u64 {
        (PIECE.min(pages) * LIST_PAGE_BYTES) as u64
    }
}

impl<G: Deref<Target = Graph>> PagesByHost<G> {
    /// A reader of the `pages` of `graph` by at most so many `threads`, for kernels of `device`, `bytes` of them
    /// at a time; `None` where the host's memory does not hold these and those that a thread reads.
    ///
    /// # Errors
    /// Too little memory of the device, any error of the driver or an engine.
    pub fn new(
        graph: G,
        pages: PagedFile,
        threads: usize,
        bytes: u64,
        device: &Device,
    ) -> Result<Option<Self>> {
        let (each, left) = (PageReader::most_bytes(&graph, READS), graph.memory().budget().left());
        let threads = threads.min((left / THREADS_SHARE / each.max(1)) as usize).max(1);
        let all = threads as u64 * each + bytes;
        let what = "neighbours that are read for the GPU";
        let Some(held) = graph.memory().reserve_if_left(all, what)? else { return Ok(None) };
        let reader = |_| PageReader::with_reads(&graph, READS).map(Mutex::new);
        let readers = (0..threads).map(reader).collect::<Result<_>>()?;
        let (staging, place) = (vec![0; bytes as usize], DeviceBuf::new(device, bytes as usize)?);
        let (threads, brought) = (ThreadPool::new(threads), ListPages::default());
        Ok(Some(Self { graph, pages, threads, readers, staging, place, brought, _held: held }))
    }

    /// Reads a piece of the pages that are wanted to the staging memory, where its first is in front; returns
    /// the number of reads.
    fn read(&mut self, piece: &[RowRequest]) -> Result<u64> {
        let Self { graph, pages, threads, readers, staging, .. } = self;
        let graph: &Graph = graph;
        let each = piece.len().div_ceil(readers.len()).max(LEAST_EACH);
        let parts = piece.chunks(each).zip(staging.chunks_mut(each * LIST_PAGE_BYTES));
        if piece.len() <= each {
            // Waking a thread takes longer than some reads.
            return parts
                .zip(readers)
                .map(|((part, to), reader)| read_part(graph, pages, &mut lock(reader), part, to))
                .sum();
        }
        let parts: Vec<_> = parts.zip(&*readers).map(|part| Mutex::new(Some(part))).collect();
        let read = threads.each(|number| {
            let part = parts.get(number).and_then(|part| lock(part).take());
            part.map_or(Ok(0), |((part, to), reader)| {
                read_part(graph, pages, &mut lock(reader), part, to)
            })
        })?;
        read.into_iter().sum()
    }
}

/// Reads pages to their places side by side in `to`, in the order of `part`; returns the number of reads.
fn read_part(
    graph: &Graph,
    pages: &PagedFile,
    reader: &mut PageReader,
    part: &[RowRequest],
    to: &mut [u8],
) -> Result<u64> {
    let mut ascending: Vec<(u64, usize)> =
        part.iter().zip(0..).map(|(request, place)| (request.row.into(), place)).collect();
    ascending.sort_unstable();
    let numbers: Vec<u64> = ascending.iter().map(|&(number, _)| number).collect();
    let visit = |number: u64, page: &[u8]| {
        if !graph.is_unchecked() {
            check_page(page, &pages.name, number, pages.salt)?;
        }
        if let Ok(found) = numbers.binary_search(&number) {
            let place = ascending[found].1 * LIST_PAGE_BYTES;
            to[place..place + LIST_PAGE_BYTES].copy_from_slice(page);
        }
        Ok(())
    };
    let read = reader.read(pages.file, &numbers, || Ok(false), visit)?;
    graph.totals().read_pages(read.bytes, read.reads);
    Ok(read.reads)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<G> fmt::Debug for PagesByHost<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PagesByHost({})", self.pages.name)
    }
}

impl<G: Deref<Target = Graph> + Send> ListReads for PagesByHost<G> {
    fn piece(&self) -> usize {
        self.place.len() / LIST_PAGE_BYTES
    }

    fn bring(
        &mut self,
        stream: &Stream,
        wanted: RowRequests,
        count: usize,
        take: &mut dyn FnMut(PiecePages) -> Result<()>,
    ) -> Result<()> {
        let wanted = stream.download_view(DeviceView::at(wanted.list, count))?;
        let mut first = 0;
        for piece in wanted.chunks(self.piece()) {
            self.brought.reads += self.read(piece)?;
            self.brought.pages += piece.len() as u64;
            let bytes = piece.len() * LIST_PAGE_BYTES;
            stream.upload_at(&mut self.place, 0, &self.staging[..bytes])?;
            take(PiecePages { pages: DeviceView::at(self.place.ptr(), bytes), first })?;
            first += piece.len() as u32;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }

    fn impossible(&self, vertex: u32) -> Error {
        damaged_list(vertex)
    }

    fn brought(&self) -> ListPages {
        self.brought
    }
}
