//! Neighbour lists on storage: the pages of them that kernels want, and whoever brings those.

use std::fmt::Debug;

use bytemuck::Pod;
use tiergraph_core::{Error, Result};

use super::of_stored;
use crate::kernels::{RowRequest, RowRequests, Source};
use crate::shared::shared;
use crate::{DeviceBuf, DevicePtr, DeviceView, Grid, Kernel, Stream};

const THREADS: u32 = 256;

/// Bytes of a page of neighbour lists.
pub const LIST_PAGE_BYTES: usize = 4096;

shared! {
    #[derive(Debug, Pod)]
    pub(in crate::kernels) struct StoredArguments as "Stored" {
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
    pub(in crate::kernels) struct Decoding as "Decoding" {
        pages: DevicePtr<u8>,
        impossible: DevicePtr<u32>,
        first: u32,
        pub count: u32,
    }
}

pub(super) fn source() -> Source {
    of_stored("stored", &[include_str!("stored.cu")])
}

/// Pages of neighbour lists that were brought to device memory, one behind the other.
#[derive(Debug, Clone, Copy)]
pub struct PiecePages {
    /// The bytes of the pages.
    pub pages: DeviceView<u8>,
    /// The number, among all pages that are wanted, of the first.
    pub first: u32,
}

/// Counts of pages of neighbour lists that were brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListPages {
    /// The pages.
    pub pages: u64,
    /// Reads submitted: adjacent pages may share one.
    pub reads: u64,
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

    /// The pages that were brought so far.
    fn brought(&self) -> ListPages;
}

/// The pages of a graph's neighbour lists on storage, of which kernels want some.
#[derive(Debug)]
pub struct StoredLists<'a> {
    index: DeviceBuf<u64>,
    slots: DeviceBuf<u32>,
    wanted: DeviceBuf<RowRequest>,
    count: DeviceBuf<u32>,
    /// A vertex whose list is not as its page should have it; all ones if there is none.
    impossible: DeviceBuf<u32>,
    vertices: usize,
    forget: Kernel,
    reads: Box<dyn ListReads + 'a>,
}

impl<'a> StoredLists<'a> {
    /// Lists of `vertices` vertices on pages that `index` has two words of each: its first vertex, and how
    /// many neighbours of that are on earlier pages. `reads` brings them.
    ///
    /// # Errors
    /// Not enough device memory, no compiler.
    ///
    /// # Panics
    /// If there are 2³¹ pages or more, or a piece has none.
    pub fn new(
        stream: &Stream,
        index: &[u64],
        vertices: usize,
        reads: Box<dyn ListReads + 'a>,
    ) -> Result<Self> {
        let (device, pages) = (stream.device(), index.len() / 2);
        assert!(pages < 1 << 31 && reads.piece() > 0, "`{pages}` pages");
        let mut slots = DeviceBuf::new(device, pages)?;
        stream.fill_bytes(&mut slots, 0xff)?;
        Ok(Self {
            index: stream.uploaded(index)?,
            slots,
            wanted: DeviceBuf::new(device, pages)?,
            count: stream.uploaded(&[0])?,
            impossible: stream.uploaded(&[u32::MAX])?,
            vertices,
            forget: source().compile(device)?.kernel("forget_pages")?,
            reads,
        })
    }

    /// Bytes of device memory for so many pages.
    pub fn device_bytes(pages: usize) -> u64 {
        (pages * (2 * size_of::<u64>() + size_of::<u32>() + size_of::<RowRequest>())) as u64
    }

    pub(in crate::kernels) fn arguments(&self) -> StoredArguments {
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

    /// How many pages are wanted when what was submitted to the stream is done.
    pub(in crate::kernels) fn wanted(&self, stream: &Stream) -> Result<usize> {
        Ok(stream.download(&self.count, 1)?[0] as usize)
    }

    /// Brings the `count` pages that are wanted, and calls `decode` for each piece of them, which submits to
    /// the stream.
    pub(in crate::kernels) fn bring(
        &mut self,
        stream: &Stream,
        count: usize,
        mut decode: impl FnMut(&Decoding) -> Result<()>,
    ) -> Result<()> {
        let wanted = RowRequests { list: self.wanted.ptr(), count: self.count.ptr() };
        let impossible = self.impossible.ptr();
        self.reads.bring(stream, wanted, count, &mut |piece| {
            let pages = piece.pages.ptr();
            let count = (piece.pages.len() / LIST_PAGE_BYTES) as u32;
            decode(&Decoding { pages, impossible, first: piece.first, count })
        })
    }

    /// Has the `count` pages that are wanted be so no more, in order with the stream.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn forget(&mut self, stream: &Stream, count: usize) -> Result<()> {
        let arguments = self.arguments();
        // SAFETY: the parameter of `forget_pages`, which goes over the pages that are wanted.
        unsafe { self.forget.launch(stream, Grid::over(count, THREADS), &[&arguments])? };
        stream.fill_bytes(&mut self.count, 0)
    }

    /// Says whether all pages that were brought are as they should be. The stream has nothing left to do.
    ///
    /// # Errors
    /// A damaged page, any error of the driver.
    pub fn check(&mut self, stream: &Stream) -> Result<()> {
        self.reads.check()?;
        match stream.download(&self.impossible, 1)?[0] {
            u32::MAX => Ok(()),
            vertex => Err(self.reads.impossible(vertex)),
        }
    }

    /// Whoever brings pages.
    pub fn reads(&self) -> &(dyn ListReads + 'a) {
        &*self.reads
    }
}
