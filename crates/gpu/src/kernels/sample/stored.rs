//! Neighbour lists on storage: the pages of them that a hop wants, and whoever brings those.

use std::fmt::Debug;

use bytemuck::Pod;
use tiergraph_core::{Error, Result};

use crate::kernels::{RowRequest, RowRequests};
use crate::shared::shared;
use crate::{DeviceBuf, DevicePtr, DeviceView, Stream};

/// Bytes of a page of neighbour lists.
pub const LIST_PAGE_BYTES: usize = 4096;

shared! {
    #[derive(Debug, Pod)]
    pub(super) struct StoredArguments as "Stored" {
        index: DevicePtr<u64>,
        slots: DevicePtr<u32>,
        wanted: DevicePtr<RowRequest>,
        count: DevicePtr<u32>,
        pages: u32,
        piece: u32,
        vertices: u32,
        reserved: u32,
    }
}

impl StoredArguments {
    /// Of a graph none of whose lists is on storage.
    pub const NONE: Self = Self {
        index: DevicePtr::NULL,
        slots: DevicePtr::NULL,
        wanted: DevicePtr::NULL,
        count: DevicePtr::NULL,
        pages: 0,
        piece: 1,
        vertices: 0,
        reserved: 0,
    };
}

shared! {
    pub(super) struct Decoding as "Decoding" {
        pages: DevicePtr<u8>,
        impossible: DevicePtr<u32>,
        first: u32,
        count: u32,
    }
}

/// Pages of neighbour lists that were brought to device memory, one behind the other.
#[derive(Debug, Clone, Copy)]
pub struct PiecePages {
    /// The bytes of the pages.
    pub pages: DeviceView<u8>,
    /// The number, among all pages that the hop wants, of the first.
    pub first: u32,
}

/// Whoever brings pages of neighbour lists from storage to device memory.
pub trait ListReads: Debug + Send {
    /// The most pages that are brought together: a page goes to its number modulo this.
    fn piece(&self) -> usize;

    /// Brings the `count` pages that are wanted, when what was submitted to `stream` is done, and calls
    /// `take` for each piece of them, in order: what it submits to the stream finds the pages there.
    ///
    /// # Errors
    /// A page that cannot be read, any error of the driver.
    fn bring(
        &mut self,
        stream: &Stream,
        wanted: RowRequests,
        count: usize,
        take: &mut dyn FnMut(PiecePages) -> Result<()>,
    ) -> Result<()>;

    /// Says whether all pages that were brought are as they should be; what took them has ended.
    ///
    /// # Errors
    /// A damaged page, any error of the driver.
    fn check(&mut self) -> Result<()>;

    /// The error of a vertex whose list is not as its page should have it.
    fn impossible(&self, vertex: u32) -> Error;

    /// How many pages were brought so far.
    fn pages(&self) -> u64;
}

/// The pages of a graph's neighbour lists on storage, of which hops want some.
#[derive(Debug)]
pub struct StoredLists {
    index: DeviceBuf<u64>,
    slots: DeviceBuf<u32>,
    wanted: DeviceBuf<RowRequest>,
    count: DeviceBuf<u32>,
    /// A vertex whose list is not as its page should have it; all ones if there is none.
    impossible: DeviceBuf<u32>,
    vertices: usize,
    reads: Box<dyn ListReads>,
}

impl StoredLists {
    /// Lists of `vertices` vertices on pages that `index` has two words of each: its first vertex, and how
    /// many neighbours of that are on earlier pages. `reads` brings them.
    ///
    /// # Errors
    /// Not enough device memory.
    ///
    /// # Panics
    /// If there are 2³² − 2 pages or more, or a piece has none.
    pub fn new(
        stream: &Stream,
        index: &[u64],
        vertices: usize,
        reads: Box<dyn ListReads>,
    ) -> Result<Self> {
        let (device, pages) = (stream.device(), index.len() / 2);
        assert!(pages < u32::MAX as usize - 1 && reads.piece() > 0, "`{pages}` pages");
        let mut slots = DeviceBuf::new(device, pages)?;
        stream.fill_bytes(&mut slots, 0xff)?;
        Ok(Self {
            index: stream.uploaded(index)?,
            slots,
            wanted: DeviceBuf::new(device, pages)?,
            count: stream.uploaded(&[0])?,
            impossible: stream.uploaded(&[u32::MAX])?,
            vertices,
            reads,
        })
    }

    /// Bytes of device memory for so many pages.
    pub fn device_bytes(pages: usize) -> u64 {
        (pages * (2 * size_of::<u64>() + size_of::<u32>() + size_of::<RowRequest>())) as u64
    }

    pub(super) fn arguments(&self) -> StoredArguments {
        StoredArguments {
            index: self.index.ptr(),
            slots: self.slots.ptr(),
            wanted: self.wanted.ptr(),
            count: self.count.ptr(),
            pages: self.slots.len() as u32,
            piece: self.reads.piece() as u32,
            vertices: self.vertices as u32,
            reserved: 0,
        }
    }

    /// Brings the pages that a hop wants, and calls `decode` for each piece of them, which submits to the
    /// stream.
    pub(super) fn bring(
        &mut self,
        stream: &Stream,
        mut decode: impl FnMut(&Decoding) -> Result<()>,
    ) -> Result<()> {
        let count = stream.download(&self.count, 1)?[0] as usize;
        let wanted = RowRequests { list: self.wanted.ptr(), count: self.count.ptr() };
        let impossible = self.impossible.ptr();
        self.reads.bring(stream, wanted, count, &mut |piece| {
            let pages = piece.pages.ptr();
            let count = (piece.pages.len() / LIST_PAGE_BYTES) as u32;
            decode(&Decoding { pages, impossible, first: piece.first, count })
        })
    }

    /// Has the next hop want no page, in order with the stream.
    pub(super) fn forget_count(&mut self, stream: &Stream) -> Result<()> {
        stream.fill_bytes(&mut self.count, 0)
    }

    /// How many pages there may be that a hop wants.
    pub(super) fn pages(&self) -> usize {
        self.slots.len()
    }

    /// Says whether all pages that were brought are as they should be. The stream has nothing left to do.
    pub(super) fn check(&mut self, stream: &Stream) -> Result<()> {
        self.reads.check()?;
        match stream.download(&self.impossible, 1)?[0] {
            u32::MAX => Ok(()),
            vertex => Err(self.reads.impossible(vertex)),
        }
    }

    /// Whoever brings pages.
    pub fn reads(&self) -> &dyn ListReads {
        &*self.reads
    }
}
