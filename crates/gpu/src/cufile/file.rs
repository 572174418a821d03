//! Files that cuFile reads.

use std::ffi::{c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::offset_of;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr;

use tiergraph_core::{Error, ErrorKind, Result};

use super::{CuFile, OTHERWISE, check, meaning, pointer};
use crate::driver::Handle;
use crate::{Device, DeviceSpan};

/// `CUfileDescr_t`, of a file descriptor.
#[repr(C)]
pub(crate) struct Descriptor {
    kind: c_int,
    handle: FileHandle,
    operations: *const c_void,
}

#[derive(Clone, Copy)]
#[repr(C)]
union FileHandle {
    fd: c_int,
    _other: *const c_void,
}

const _: () = assert!(size_of::<Descriptor>() == 24 && offset_of!(Descriptor, handle) == 8);

/// `CU_FILE_HANDLE_TYPE_OPAQUE_FD`.
const FILE_DESCRIPTOR: c_int = 1;

/// A file that cuFile reads into device memory.
#[derive(Debug)]
pub struct DirectFile {
    cufile: &'static CuFile,
    device: Device,
    handle: Handle,
    path: PathBuf,
    bypasses_cache: bool,
    /// Open as long as it is registered.
    _file: File,
}

// SAFETY: cuFile's functions may be called from any thread, several at once.
unsafe impl Send for DirectFile {}
// SAFETY: as above.
unsafe impl Sync for DirectFile {}

impl DirectFile {
    /// Opens `path` for reads into `device`'s memory, past the page cache where the file system can.
    ///
    /// # Errors
    /// No such file, or one that cuFile does not take.
    pub fn open(cufile: &'static CuFile, device: &Device, path: &Path) -> Result<Self> {
        let failed = |e| Error::io("open", path.display(), e);
        let (file, bypasses_cache) =
            match OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path) {
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                    (File::open(path).map_err(failed)?, false)
                }
                opened => (opened.map_err(failed)?, true),
            };
        device.bind()?;
        let mut handle = ptr::null_mut();
        let (kind, operations) = (FILE_DESCRIPTOR, ptr::null());
        let fd = FileHandle { fd: file.as_raw_fd() };
        let descriptor = Descriptor { kind, handle: fd, operations };
        // SAFETY: an open file; writes one handle, released in `drop`.
        let done =
            unsafe { (cufile.functions.file_register)(&raw mut handle, &raw const descriptor) };
        check(done, || refused(path, bypasses_cache))?;
        let (device, path) = (device.clone(), path.to_path_buf());
        Ok(Self { cufile, device, handle, path, bypasses_cache, _file: file })
    }

    /// Whether the file is read past the page cache.
    pub fn bypasses_cache(&self) -> bool {
        self.bypasses_cache
    }

    /// Reads bytes of the file, from `offset` on, into the bytes `part` of `to`, and waits for them.
    /// Returns how many were read: fewer than asked for at the file's end.
    ///
    /// No kernel or copy may use that part meanwhile: reads are in the order of no stream.
    ///
    /// # Errors
    /// Any error of cuFile or of the system, with the file and the offset.
    ///
    /// # Panics
    /// If `to` is shorter.
    pub fn read(&self, to: &DeviceSpan, part: Range<usize>, offset: u64) -> Result<usize> {
        assert!(part.end <= to.len(), "{part:?} of {}", to.len());
        self.device.bind()?;
        let (start, at, len) = (pointer(to.buffer()), to.start() + part.start, part.len());
        let mut filled = 0;
        // A call may read less than asked for.
        while filled < len {
            let (left, from) = (len - filled, (offset + filled as u64) as i64);
            // SAFETY: `len` bytes of the buffer from `at` on are there, by the assertion, and the call
            // ends when they are written.
            let count = unsafe {
                (self.cufile.functions.read)(self.handle, start, left, from, (at + filled) as i64)
            };
            match count {
                0 => break,
                -1 => {
                    let failure = Failure::System(io::Error::last_os_error());
                    return Err(self.failure(failure, offset, len));
                }
                code if code < 0 => {
                    return Err(self.failure(Failure::CuFile(-code as c_int), offset, len));
                }
                count => filled += (count as usize).min(left),
            }
        }
        Ok(filled)
    }

    fn failure(&self, failure: Failure, offset: u64, len: usize) -> Error {
        let at = format!("`{len}` bytes at offset `{offset}`");
        let error = match failure {
            Failure::System(source) => Error::io("read", self.path.display(), source).expected(at),
            Failure::CuFile(code) => Error::new(ErrorKind::Device, "read")
                .object(self.path.display())
                .expected(format!("{at} in GPU memory"))
                .got(meaning(code)),
        };
        error.hint(OTHERWISE)
    }
}

impl Drop for DirectFile {
    fn drop(&mut self) {
        // SAFETY: registered in `open`; the file is closed after it.
        unsafe { (self.cufile.functions.file_deregister)(self.handle) };
    }
}

/// Why a read failed.
enum Failure {
    System(io::Error),
    CuFile(c_int),
}

/// An error of a file that is not taken.
fn refused(path: &Path, bypasses_cache: bool) -> Error {
    let error = Error::new(ErrorKind::Device, "open for reads into GPU memory");
    let error = error.object(path.display());
    if bypasses_cache {
        return error.expected("a file that cuFile takes");
    }
    error.expected("a file on a drive: this file system (tmpfs?) refuses `O_DIRECT`")
}
