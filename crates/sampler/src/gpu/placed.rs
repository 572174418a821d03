//! A loader's share of a GPU, where it placed data, and its counts.

use serde::Serialize;
use tiergraph_core::Result;
use tiergraph_gpu::{Device, Stream};
use tiergraph_graph::ListsReadBy;

use super::{ReadRates, StorageReads, Transactions};

/// The GPU, and how much of it a loader may use.
#[derive(Debug, Clone, Copy, Default)]
pub struct GpuTiers {
    /// The index of the GPU, from 0.
    pub ordinal: usize,
    /// Bytes of device memory; by default, half of what is free, because training needs the rest.
    pub device_memory: Option<u64>,
    /// The most multiprocessors that prepare batches; `None` for all.
    pub multiprocessors: Option<u32>,
    /// The number of batches that are begun before the one before them is handed over; by default 1, or
    /// 3 where rows are read from storage.
    pub prefetch: Option<usize>,
}

impl GpuTiers {
    /// A stream on so many multiprocessors; or on all, and the reason, where it cannot be restricted.
    pub(super) fn stream(&self, device: &Device) -> Result<(Stream, Option<String>)> {
        let why = match self.multiprocessors {
            Some(most) if most < device.multiprocessors() => {
                match Stream::urgent_on(device, most)? {
                    Ok(stream) => return Ok((stream, None)),
                    Err(why) => Some(why),
                }
            }
            _ => None,
        };
        Ok((Stream::urgent(device)?, why))
    }
}

/// Where a loader's neighbours and rows are, and where its kernels run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Placed {
    /// Whether all neighbours are in device memory.
    pub neighbors_on_device: bool,
    /// Bytes of the neighbour lists in device memory.
    pub device_list_bytes: u64,
    /// Bytes of the neighbour lists in pinned host memory.
    pub host_list_bytes: u64,
    /// Bytes that the neighbour lists on storage would take in memory.
    pub storage_list_bytes: u64,
    /// Who reads the pages of those; `None` where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_reads_by: Option<ListsReadBy>,
    /// The number of feature rows in device memory.
    pub device_rows: u64,
    /// The number of feature rows in pinned host memory.
    pub host_rows: u64,
    /// The number of feature rows that are read from storage.
    pub storage_rows: u64,
    /// The number of rows that a page cache in device memory has room for; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_rows: Option<u64>,
    /// Who starts the reads of those, and the way they come; `None` where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_reads: Option<&'static str>,
    /// Rows a second of the GPU and of the host in a trial of who reads them faster; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_rates: Option<ReadRates>,
    /// Bytes of device memory that the loader takes.
    pub device_bytes: u64,
    /// Bytes of pinned host memory that the loader takes.
    pub host_bytes: u64,
    /// The number of multiprocessors that prepare batches.
    pub multiprocessors: u32,
    /// Why all multiprocessors prepare batches, where fewer were asked for; else `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiprocessors_why: Option<String>,
    /// The transactions of the presampled batches; `None` where all is in device memory, or the CPU
    /// samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Predicted>,
}

/// The transactions over PCIe that presampling predicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Predicted {
    /// The number of batches that were presampled, from the first of epoch 0 on; 0 where none was, and
    /// every list and row counts once.
    pub batches: u64,
    /// The transactions of those batches.
    #[serde(flatten)]
    pub transactions: Transactions,
}

/// Counts of a loader's work so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Done {
    /// Reads of feature rows from storage.
    #[serde(flatten)]
    pub reads: StorageReads,
    /// Transactions over PCIe of lists and rows that are not in device memory, as kernels count them.
    pub transactions: Transactions,
    /// Kernels, copies and fills submitted to the GPU, beside PyTorch's own.
    pub submissions: u64,
    /// Seconds that the host took to submit them.
    pub seconds_submit: f64,
}

impl Done {
    /// The counts since those of `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.since(&earlier.reads),
            transactions: self.transactions.since(&earlier.transactions),
            submissions: self.submissions - earlier.submissions,
            seconds_submit: self.seconds_submit - earlier.seconds_submit,
        }
    }
}
