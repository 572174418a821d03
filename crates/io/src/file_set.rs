//! The files that engines may read, opened once and shared by every worker.
//!
//! A logical file lies on 1 to n stripes (RAID-0 without a RAID), each a file or extents of a raw
//! device. Each stripe is opened with
//! `O_DIRECT`, because a pass reads more than memory holds and the page cache would only copy and
//! evict. A file system that refuses (`EINVAL`, on opening or on a first read) is read through the
//! page cache instead, and [`FileSet::accesses`] says so.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};
use tiergraph_nvme::SharedMemory;

use crate::stripe::Layout;
use crate::{Memory, Read};

/// Bytes of the smallest blocks that drives have.
const SECTOR_BYTES: usize = 512;

/// The id of a logical file in one [`FileSet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(u32);

/// How to open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opening {
    /// With `O_DIRECT`, or through the page cache where the file system refuses it.
    #[default]
    Direct,
    /// Through the page cache.
    Buffered,
}

/// How a file was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// With `O_DIRECT`.
    Direct,
    /// Through the page cache, and why.
    Buffered(String),
}

/// Bytes of a raw device, or of a file, that hold a part of a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The byte at which the extent starts: a multiple of 4 KiB.
    pub start: u64,
    /// Bytes of the extent: a multiple of 4 KiB, except for the last of a stripe.
    pub len: u64,
}

/// The file or raw device, or the parts of it, that hold one stripe of a logical file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeSource {
    /// The path of the file or raw device.
    pub path: PathBuf,
    /// The parts that make up the stripe, one after the other; empty for the whole file or device.
    pub extents: Vec<Extent>,
}

impl From<&Path> for StripeSource {
    fn from(path: &Path) -> Self {
        Self { path: path.to_path_buf(), extents: Vec::new() }
    }
}

/// The extents that make up a stripe, in order, each with the byte of the stripe where it begins; none for
/// a stripe in one piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extents(Vec<(u64, Extent)>);

impl Extents {
    /// Whether the stripe is in one piece.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where in what holds the stripe its bytes `offset..offset + len` are, if in one piece.
    pub(crate) fn locate(&self, offset: u64, len: u64) -> Option<u64> {
        let after = self.0.partition_point(|&(begin, _)| begin <= offset);
        let Some(&(begin, extent)) = self.0.get(after.saturating_sub(1)) else {
            return Some(offset);
        };
        let within = offset - begin;
        // Reads are whole pages, and the stripe's last extent may end inside one.
        let end = extent.len.next_multiple_of(PAGE_BYTES as u64);
        let is_last = after == self.0.len();
        (is_last || within + len <= end).then_some(extent.start + within)
    }
}

/// A set of logical files, opened for reading.
#[derive(Debug, Default)]
pub struct FileSet {
    opening: Opening,
    files: Vec<Logical>,
    stripes: Vec<Stripe>,
}

#[derive(Debug)]
struct Logical {
    /// What the file is, wherever it lies; empty if nobody said.
    identity: String,
    first_stripe: usize,
    layout: Layout,
    len: u64,
}

/// One opened path.
#[derive(Debug)]
pub(crate) struct Stripe {
    pub(crate) file: File,
    path: PathBuf,
    access: Access,
    len: u64,
    pub(crate) extents: Extents,
}

impl Stripe {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the opened path, as far as the stripe uses it.
    pub(crate) fn path_bytes(&self) -> u64 {
        let end = |(_, extent): &(u64, Extent)| extent.start + extent.len;
        self.extents.0.iter().map(end).max().unwrap_or(self.len)
    }
}

/// Where a read's bytes are: a stripe's number in the set, and the place in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) stripe: usize,
    pub(crate) offset: u64,
}

impl FileSet {
    /// An empty set, opening with `O_DIRECT` where that works.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty set that opens files as told.
    pub fn with_opening(opening: Opening) -> Self {
        Self { opening, ..Self::default() }
    }

    /// Opens the file at `path`, which is not striped; returns its id.
    pub fn open(&mut self, path: &Path) -> Result<FileId> {
        self.open_striped(&[path.to_path_buf()], PAGE_BYTES as u64)
    }

    /// Opens a file whose units of `unit_bytes` (a block) lie on `paths` in turn; returns its id.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where a path cannot be opened, [`ErrorKind::Format`] where the stripes'
    /// lengths do not make one file, [`ErrorKind::Input`] for a unit of no whole pages.
    pub fn open_striped(&mut self, paths: &[PathBuf], unit_bytes: u64) -> Result<FileId> {
        let stripes: Vec<StripeSource> = paths.iter().map(|path| (&**path).into()).collect();
        self.open_extents(&stripes, unit_bytes)
    }

    /// As [`open_striped`](Self::open_striped), for stripes that may be extents of raw devices. A
    /// unit lies in one extent.
    ///
    /// # Errors
    /// As [`open_striped`](Self::open_striped); extents that do not lie in their path.
    pub fn open_extents(&mut self, stripes: &[StripeSource], unit_bytes: u64) -> Result<FileId> {
        let page = PAGE_BYTES as u64;
        if stripes.is_empty() || unit_bytes == 0 || !unit_bytes.is_multiple_of(page) {
            return Err(Error::new(ErrorKind::Input, "open a striped file")
                .expected("one path or more and a stripe unit of whole pages of `4.0 KiB`")
                .got(format!("{} paths and `{unit_bytes}` bytes", stripes.len())));
        }
        let open = |source| open_stripe(source, self.opening);
        let opened: Vec<Stripe> = stripes.iter().map(open).collect::<Result<_>>()?;
        let layout = Layout { stripes: opened.len() as u64, unit_bytes };
        let len = opened.iter().map(|stripe| stripe.len).sum();
        check_lengths(&opened, layout, len)?;
        let id = FileId(self.files.len() as u32);
        let (identity, first_stripe) = (String::new(), self.stripes.len());
        self.files.push(Logical { identity, first_stripe, layout, len });
        self.stripes.extend(opened);
        Ok(id)
    }

    /// Says what a file is: the name by which raw drives that hold a copy are asked for it.
    ///
    /// # Panics
    /// When `file` is of another set and this one has fewer files.
    pub fn identify(&mut self, file: FileId, identity: String) {
        self.files[file.0 as usize].identity = identity;
    }

    /// The smallest blocks by which all files can be read: 512 bytes, or pages where a path is read past the
    /// page cache from a device of larger blocks.
    pub(crate) fn block_bytes(&self) -> u64 {
        let Ok(mut block) = AlignedBuf::zeroed(PAGE_BYTES) else { return PAGE_BYTES as u64 };
        let mut is_read = |stripe: &Stripe| {
            stripe.access != Access::Direct
                || stripe.file.read_at(&mut block[..SECTOR_BYTES], 0).is_ok()
        };
        let is_by_sectors = self.stripes.iter().all(&mut is_read);
        (if is_by_sectors { SECTOR_BYTES } else { PAGE_BYTES }) as u64
    }

    /// The place of a file among those of the set, if it is one of them.
    pub(crate) fn position(&self, file: FileId) -> Option<usize> {
        ((file.0 as usize) < self.files.len()).then_some(file.0 as usize)
    }

    /// The file that was said to be `identity`.
    pub fn find(&self, identity: &str) -> Option<FileId> {
        self.ids().find(|&file| self.identity(file) == identity)
    }

    /// The identity of a file; empty if nobody said it.
    pub(crate) fn identity(&self, file: FileId) -> &str {
        &self.files[file.0 as usize].identity
    }

    /// How a file is spread over its stripes.
    pub(crate) fn layout(&self, file: FileId) -> Layout {
        self.files[file.0 as usize].layout
    }

    /// The numbers of a file's stripes.
    pub(crate) fn stripes_of(&self, file: FileId) -> std::ops::Range<usize> {
        let file = &self.files[file.0 as usize];
        file.first_stripe..file.first_stripe + file.layout.stripes as usize
    }

    /// The length of a file in bytes.
    ///
    /// # Panics
    /// When `file` is of another set and this one has fewer files.
    pub fn len(&self, file: FileId) -> u64 {
        self.files[file.0 as usize].len
    }

    /// Bytes of the largest piece, at most `limit`, that never crosses a stripe unit when a file is read
    /// piece after piece.
    pub fn piece_bytes(&self, file: FileId, limit: usize) -> usize {
        let layout = self.files[file.0 as usize].layout;
        let (mut piece, mut rest) = (limit as u64, layout.unit_bytes);
        while layout.stripes > 1 && rest != 0 {
            (piece, rest) = (rest, piece % rest);
        }
        piece as usize
    }

    /// Every path that the set has open, and how it was opened.
    pub fn accesses(&self) -> impl Iterator<Item = (&Path, &Access)> {
        self.stripes.iter().map(|stripe| (stripe.path.as_path(), &stripe.access))
    }

    /// Whether the set has no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The ids of all files.
    pub fn ids(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.files.len() as u32).map(FileId)
    }

    pub(crate) fn stripes(&self) -> &[Stripe] {
        &self.stripes
    }

    /// How many bytes a read of `len` bytes at `offset` gives: fewer at the end.
    pub(crate) fn available(&self, file: FileId, offset: u64, len: usize) -> usize {
        let left = self.files.get(file.0 as usize).map_or(0, |f| f.len.saturating_sub(offset));
        usize::try_from(left).unwrap_or(usize::MAX).min(len)
    }

    /// Where the bytes of a read are, once it is known to be one that can be done, by an engine that
    /// writes to `memory`.
    pub(crate) fn place(&self, read: &Read, memory: Memory) -> Result<Place> {
        let Some(file) = self.files.get(read.file.0 as usize) else {
            return Err(Error::new(ErrorKind::Input, "read file")
                .object(read.file.0)
                .expected(format!("one of the `{}` files of the set", self.files.len())));
        };
        let (stripe, offset) = file.layout.locate(read.offset);
        let place = Place { stripe: file.first_stripe + stripe as usize, offset };
        let page = PAGE_BYTES as u64;
        let is_whole = |bytes: usize| bytes.is_multiple_of(PAGE_BYTES);
        if !read.offset.is_multiple_of(page) || !is_whole(read.len) || !is_whole(read.at) {
            return Err(self.refusal(place, read).expected("multiples of `4.0 KiB`"));
        }
        if read.at + read.len > read.to.len() {
            let room = ByteSize(read.to.len().saturating_sub(read.at) as u64);
            return Err(self
                .refusal(place, read)
                .expected(format!("at most the buffer's `{room}`")));
        }
        if read.to.memory() != memory {
            let expected = match memory {
                Memory::Host => "host memory to read into",
                Memory::Device => "device memory to read into",
            };
            return Err(self.refusal(place, read).expected(expected));
        }
        if !file.layout.holds_in_one_piece(read.offset, read.len as u64) {
            let unit = ByteSize(file.layout.unit_bytes);
            return Err(self
                .refusal(place, read)
                .expected(format!("a read inside one stripe unit of `{unit}`")));
        }
        match self.stripes[place.stripe].extents.locate(offset, read.len as u64) {
            Some(offset) => Ok(Place { offset, ..place }),
            None => Err(self.refusal(place, read).expected("a read inside one extent")),
        }
    }

    /// Where a byte of a file is, if it is there.
    pub(crate) fn stripe_of(&self, file: FileId, offset: u64) -> Place {
        let Some(file) = self.files.get(file.0 as usize) else {
            return Place { stripe: 0, offset };
        };
        let (stripe, offset) = file.layout.locate(offset);
        let stripe = file.first_stripe + stripe as usize;
        Place { stripe, offset: self.stripes[stripe].extents.locate(offset, 0).unwrap_or(offset) }
    }

    /// Reads `len` bytes of a file from `offset` on, a multiple of 4 KiB, to the start of `to`, which has
    /// room for whole pages.
    pub(crate) fn read_to(
        &self,
        file: FileId,
        offset: u64,
        to: &SharedMemory,
        len: usize,
    ) -> Result<()> {
        let unit = self.layout(file).unit_bytes;
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let place = self.stripe_of(file, at);
            let count = (len - done).min((unit - at % unit) as usize);
            let whole = count.next_multiple_of(PAGE_BYTES);
            let read = to.read_file(&self.stripes[place.stripe].file, place.offset, done, whole);
            let read = read.map_err(|e| self.failure(place, count, e))?;
            if read < count {
                let short = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(self.failure(place, count, short));
            }
            done += count;
        }
        Ok(())
    }

    fn refusal(&self, place: Place, read: &Read) -> Error {
        Error::new(ErrorKind::Input, "read")
            .object(self.stripes[place.stripe].path.display())
            .got(format!("`{}` bytes at offset `{}`", read.len, read.offset))
    }

    /// The operating system's error for `len` bytes at `place`.
    pub(crate) fn failure(&self, place: Place, len: usize, source: io::Error) -> Error {
        let at = format!("`{len}` bytes at offset `{}`", place.offset);
        Error::io("read", self.stripes[place.stripe].path.display(), source).expected(at)
    }
}

fn open_stripe(source: &StripeSource, opening: Opening) -> Result<Stripe> {
    let path = &*source.path;
    let failed = |e| Error::io("open", path.display(), e);
    let (mut file, access) = match opening {
        Opening::Buffered => (File::open(path).map_err(failed)?, buffered("as asked")),
        Opening::Direct => match open_direct(path) {
            Ok(file) => (file, Access::Direct),
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => (
                File::open(path).map_err(failed)?,
                buffered("the file system refuses `O_DIRECT` (EINVAL)"),
            ),
            Err(e) => return Err(failed(e)),
        },
    };
    // Metadata would say 0 for a block device.
    let size = file.seek(SeekFrom::End(0)).map_err(failed)?;
    let (len, extents) = match &source.extents[..] {
        [] => (size, Extents::default()),
        extents => numbered(path, extents, size)?,
    };
    Ok(Stripe { file, path: path.to_path_buf(), access, len, extents })
}

/// The bytes of all extents, and each with the byte of the stripe where it begins.
fn numbered(path: &Path, extents: &[Extent], size: u64) -> Result<(u64, Extents)> {
    let page = PAGE_BYTES as u64;
    let (mut len, mut numbered) = (0, Vec::new());
    for (number, &extent) in extents.iter().enumerate() {
        let end = extent.start.checked_add(extent.len).filter(|&end| end <= size);
        let is_last = number + 1 == extents.len();
        let is_aligned = extent.start.is_multiple_of(page)
            && (is_last || extent.len.is_multiple_of(page) && extent.len > 0);
        if end.is_none() || !is_aligned {
            return Err(Error::new(ErrorKind::Format, "open the extents of")
                .object(path.display())
                .expected(format!("whole pages of `4.0 KiB` inside its `{size}` bytes"))
                .got(format!("`{}` bytes at `{}`", extent.len, extent.start)));
        }
        numbered.push((len, extent));
        len += extent.len;
    }
    Ok((len, Extents(numbered)))
}

fn buffered(why: &str) -> Access {
    Access::Buffered(why.to_owned())
}

/// Opens with `O_DIRECT` and reads a page: some file systems refuse only then.
fn open_direct(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let mut page = AlignedBuf::zeroed(PAGE_BYTES).map_err(io::Error::other)?;
    match file.read_at(&mut page, 0) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => Err(e),
        // Any other error is the read's to report, once somebody reads.
        _ => Ok(file),
    }
}

fn check_lengths(stripes: &[Stripe], layout: Layout, len: u64) -> Result<()> {
    if layout.stripes == 1 {
        return Ok(());
    }
    for (number, stripe) in stripes.iter().enumerate() {
        let expected = layout.stripe_len(number as u64, len);
        if stripe.len != expected {
            return Err(Error::new(ErrorKind::Format, "open")
                .object(stripe.path.display())
                .expected(format!("`{expected}` bytes on stripe `{number}` of a file of `{len}`"))
                .got(format!("`{}`", stripe.len))
                .hint("give the stripes in the order in which the graph was built"));
        }
    }
    Ok(())
}
