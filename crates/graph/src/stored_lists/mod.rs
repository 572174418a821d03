//! Neighbour lists on storage, for kernels that say which pages of them they want: the kernels read these from
//! drives by themselves where the graph has such (`--io gpu`; Hyperion, §III-A), and the host reads them
//! elsewhere.

mod by_host;

use std::ops::Deref;

use serde::Serialize;
use tiergraph_core::Result;
use tiergraph_gpu::Stream;
use tiergraph_gpu::kernels::{ListReads, StoredLists};
use tiergraph_io::gpu_reads::{PagedFile, PagesByGpu, ReadStreams, WhoWaits};

use crate::{Direction, Graph};
use by_host::PagesByHost;

/// Who reads the pages of neighbour lists that kernels want.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ListsReadBy {
    /// Kernels.
    Gpu,
    /// Threads of the host.
    Host,
}

/// How lists on storage are read.
#[derive(Debug, Clone, Copy)]
pub struct ListReading {
    /// Whether the host or a kernel waits for pages that kernels read.
    pub who_waits: WhoWaits,
    /// The most threads of the host, where it reads.
    pub threads: usize,
    /// The most bytes of device memory for pages on their way, if these are enough for the least queues.
    pub pages_bytes: u64,
    /// The most bytes of device memory for all of it.
    pub most_bytes: u64,
}

/// A graph's neighbour lists on storage, as kernels find them there.
#[derive(Debug)]
pub struct ListsOnStorage<'a> {
    /// The lists.
    pub lists: StoredLists<'a>,
    /// Whether kernels or the host read the pages that neighbour lists are in.
    pub read_by: ListsReadBy,
    /// Bytes of device memory that this takes.
    pub device_bytes: u64,
}

impl<'a> ListsOnStorage<'a> {
    /// The least bytes of device memory that reading the lists of so many pages takes where the host does.
    pub fn least_bytes(pages: usize) -> u64 {
        StoredLists::device_bytes(pages) + PagesByHost::device_bytes(pages)
    }

    /// The lists of `graph` in one direction; `None` where it has no pages of them, or where the device's memory
    /// or the host's memory does not hold what reading takes.
    ///
    /// # Errors
    /// No compiler of kernels, any error of the driver or a drive.
    pub fn new<G: Deref<Target = Graph> + Send + 'a>(
        graph: G,
        direction: Direction,
        stream: &Stream,
        reading: ListReading,
    ) -> Result<Option<Self>> {
        let Some(pages) = graph.rows(direction).pages() else { return Ok(None) };
        let (index, vertices) = (pages.index.to_words(), graph.vertices());
        let file = PagedFile { file: pages.file, name: pages.name, salt: pages.salt };
        let others = StoredLists::device_bytes(pages.index.len());
        let ListReading { who_waits, threads, pages_bytes, most_bytes } = reading;
        let left = most_bytes.saturating_sub(others);
        let (read_by, reads, device_bytes): (_, Box<dyn ListReads + 'a>, _) =
            match graph.engines().drives_of_gpus()? {
                Some(drives) => {
                    let (submitting, completing) = (stream.another()?, stream.another()?);
                    let streams = ReadStreams { submitting, completing };
                    let (on_host, most) = (graph.memory().budget().left(), pages_bytes.min(left));
                    let reads =
                        PagesByGpu::new(file, &drives.drives, streams, who_waits, on_host, most)?;
                    let bytes = reads.device_bytes();
                    let what = "neighbours that the GPU reads";
                    let held = graph.memory().reserve_if_left(reads.host_bytes(), what)?;
                    let Some(held) = held.filter(|_| bytes <= left) else { return Ok(None) };
                    (ListsReadBy::Gpu, Box::new(reads.holding(held)), bytes)
                }
                None => {
                    let bytes = PagesByHost::device_bytes(pages.index.len());
                    let piece = if bytes <= left { bytes } else { return Ok(None) };
                    let reads = PagesByHost::new(graph, file, threads, piece, stream.device())?;
                    let Some(reads) = reads else { return Ok(None) };
                    (ListsReadBy::Host, Box::new(reads), bytes)
                }
            };
        let lists = StoredLists::new(stream, &index, vertices, reads)?;
        Ok(Some(Self { lists, read_by, device_bytes: device_bytes + others }))
    }
}
