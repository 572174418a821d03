//! The files that engines may read, opened once and shared by every worker.
//!
//! A logical file lies on 1 to n stripes (RAID-0 without a RAID). Each stripe is opened with
//! `O_DIRECT`, because a pass reads more than memory holds and the page cache would only copy and
//! evict. A file system that refuses (`EINVAL`, on opening or on a first read) is read through the
//! page cache instead, and [`FileSet::accesses`] says so.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::Read;
use crate::stripe::Layout;

/// Names a logical file of one [`FileSet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(u32);

/// How files shall be opened.
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

/// Logical files, opened for reading.
#[derive(Debug, Default)]
pub struct FileSet {
    opening: Opening,
    files: Vec<Logical>,
    stripes: Vec<Stripe>,
}

#[derive(Debug)]
struct Logical {
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

    /// Opens a file that lies in one piece.
    pub fn open(&mut self, path: &Path) -> Result<FileId> {
        self.open_striped(&[path.to_path_buf()], PAGE_BYTES as u64)
    }

    /// Opens a file whose `unit_bytes` (a block) lie on `paths` in turn.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where a path cannot be opened, [`ErrorKind::Format`] where the stripes'
    /// lengths do not make one file, [`ErrorKind::Input`] for a unit of no whole pages.
    pub fn open_striped(&mut self, paths: &[PathBuf], unit_bytes: u64) -> Result<FileId> {
        let page = PAGE_BYTES as u64;
        if paths.is_empty() || unit_bytes == 0 || !unit_bytes.is_multiple_of(page) {
            return Err(Error::new(ErrorKind::Input, "open a striped file")
                .expected("one path or more and a stripe unit of whole pages of `4.0 KiB`")
                .got(format!("{} paths and `{unit_bytes}` bytes", paths.len())));
        }
        let opened: Vec<Stripe> =
            paths.iter().map(|path| open_stripe(path, self.opening)).collect::<Result<_>>()?;
        let layout = Layout { stripes: opened.len() as u64, unit_bytes };
        let len = opened.iter().map(|stripe| stripe.len).sum();
        check_lengths(&opened, layout, len)?;
        let id = FileId(self.files.len() as u32);
        self.files.push(Logical { first_stripe: self.stripes.len(), layout, len });
        self.stripes.extend(opened);
        Ok(id)
    }

    /// The length of a file in bytes.
    ///
    /// # Panics
    /// When `file` is of another set and this one has fewer files.
    pub fn len(&self, file: FileId) -> u64 {
        self.files[file.0 as usize].len
    }

    /// The largest piece of at most `limit` bytes that never crosses a stripe unit when a file is
    /// read piece after piece.
    pub fn piece_bytes(&self, file: FileId, limit: usize) -> usize {
        let layout = self.files[file.0 as usize].layout;
        let (mut piece, mut rest) = (limit as u64, layout.unit_bytes);
        while layout.stripes > 1 && rest != 0 {
            (piece, rest) = (rest, piece % rest);
        }
        piece as usize
    }

    /// Every path that is open, and how.
    pub fn accesses(&self) -> impl Iterator<Item = (&Path, &Access)> {
        self.stripes.iter().map(|stripe| (stripe.path.as_path(), &stripe.access))
    }

    /// Whether no file is open.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = FileId> {
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

    /// Where the bytes of a read are, once it is known to be one that can be done.
    pub(crate) fn place(&self, read: &Read) -> Result<Place> {
        let Some(file) = self.files.get(read.file.0 as usize) else {
            return Err(Error::new(ErrorKind::Input, "read file")
                .object(read.file.0)
                .expected(format!("one of the `{}` files of the set", self.files.len())));
        };
        let (stripe, offset) = file.layout.locate(read.offset);
        let place = Place { stripe: file.first_stripe + stripe as usize, offset };
        let page = PAGE_BYTES as u64;
        if !read.offset.is_multiple_of(page) || !read.len.is_multiple_of(PAGE_BYTES) {
            return Err(self.refusal(place, read).expected("multiples of `4.0 KiB`"));
        }
        if read.len > read.buffer.len() {
            let room = ByteSize(read.buffer.len() as u64);
            return Err(self
                .refusal(place, read)
                .expected(format!("at most the buffer's `{room}`")));
        }
        if !file.layout.holds_in_one_piece(read.offset, read.len as u64) {
            let unit = ByteSize(file.layout.unit_bytes);
            return Err(self
                .refusal(place, read)
                .expected(format!("a read inside one stripe unit of `{unit}`")));
        }
        Ok(place)
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

fn open_stripe(path: &Path, opening: Opening) -> Result<Stripe> {
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
    let len = file.seek(SeekFrom::End(0)).map_err(failed)?;
    Ok(Stripe { file, path: path.to_path_buf(), access, len })
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
