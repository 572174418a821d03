//! cuFile (GPUDirect Storage): reads from files into device memory, without a buffer of this
//! process's between.
//!
//! Types and names as in NVIDIA's cuFile API reference. Where the kernel module nvidia-fs is not
//! loaded, or a file system has no direct path, cuFile copies through host memory of its own
//! (its *compatibility mode*): [`CuFile::how`] says which.

use std::ffi::{c_int, c_uint, c_void};
use std::fmt;
use std::mem::offset_of;
use std::ptr;
use std::sync::OnceLock;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::driver::Handle;
use crate::library::{functions, open};
use crate::{Device, DeviceBuf};

mod file;

pub use file::DirectFile;

/// `CUfileError_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Status {
    code: c_int,
    /// The driver's code, where `code` is [`CUDA_FAILED`].
    cuda: c_int,
}

/// `CUfileDrvProps_t`, and room for what later versions append.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Properties {
    nvfs_major: c_uint,
    nvfs_minor: c_uint,
    poll_thresh_size: usize,
    max_direct_io_size: usize,
    status_flags: c_uint,
    control_flags: c_uint,
    feature_flags: c_uint,
    cache_sizes: [c_uint; 5],
    later: [u64; 16],
}

const _: () = assert!(offset_of!(Properties, feature_flags) == 32);

functions! {
    /// `libcufile`.
    Functions, Status;
    driver_open: "cuFileDriverOpen"();
    properties: "cuFileDriverGetProperties"(*mut Properties);
    file_register: "cuFileHandleRegister"(*mut Handle, *const file::Descriptor);
    file_deregister: "cuFileHandleDeregister"(Handle) -> ();
    buffer_register: "cuFileBufRegister"(*const c_void, usize, c_int);
    buffer_deregister: "cuFileBufDeregister"(*const c_void);
    read: "cuFileRead"(Handle, *mut c_void, usize, i64, i64) -> isize;
}

const NAMES: [&str; 2] = ["libcufile.so.0", "libcufile.so"];
const MISSING: &str = "pip install nvidia-cufile (for a driver of CUDA 12: nvidia-cufile-cu12), or \
                       install the CUDA toolkit; or run with `--transfers async`";
const OTHERWISE: &str = "run with `--transfers async`, which reads through host memory; cuFile may \
                         have said more in `cufile.log`, in the working directory";
/// `CU_FILE_DRIVER_ALREADY_OPEN`: by another library in this process.
const ALREADY_OPEN: c_int = 5026;
const CUDA_FAILED: c_int = 5011;

/// The cuFile library, with its driver open. It is opened once a process and never closed, because that
/// would end the reads of others in the process that use it.
pub struct CuFile {
    functions: Functions,
    nvidia_fs: Option<(u32, u32)>,
}

impl CuFile {
    /// The library that is installed, opened for `device`.
    ///
    /// # Errors
    /// A library that is not installed, or does not start.
    pub fn get(device: &Device) -> Result<&'static Self> {
        static CUFILE: OnceLock<CuFile> = OnceLock::new();
        // A library that was missing may have been installed since: only success is kept.
        match CUFILE.get() {
            Some(cufile) => Ok(cufile),
            None => Self::load(device).map(|cufile| CUFILE.get_or_init(|| cufile)),
        }
    }

    fn load(device: &Device) -> Result<Self> {
        let functions = Functions::read(open("cuFile", &NAMES, MISSING)?).map_err(|missing| {
            Error::new(ErrorKind::Device, "use cuFile")
                .got(format!("a library without {missing}"))
                .hint(MISSING)
        })?;
        device.bind()?;
        // SAFETY: takes nothing.
        let opened = unsafe { (functions.driver_open)() };
        if opened.code != ALREADY_OPEN {
            check(opened, || Error::new(ErrorKind::Device, "start cuFile"))?;
        }
        let mut properties = Properties::default();
        // SAFETY: writes the properties, for which there is more room than any version takes.
        let asked = unsafe { (functions.properties)(&raw mut properties) };
        check(asked, || Error::new(ErrorKind::Device, "ask for cuFile's properties"))?;
        let version = (properties.nvfs_major, properties.nvfs_minor);
        // Without the kernel module, both are 0.
        Ok(Self { functions, nvidia_fs: (version != (0, 0)).then_some(version) })
    }

    /// Which way bytes go from storage to the device, in words: past host memory, or through it.
    pub fn how(&self) -> String {
        match self.nvidia_fs {
            Some((major, minor)) => {
                format!("nvidia-fs {major}.{minor}: direct where drive and file system allow it")
            }
            None => {
                "compatibility mode, through cuFile's host memory: nvidia-fs is not loaded".into()
            }
        }
    }
}

impl fmt::Debug for CuFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CuFile({})", self.how())
    }
}

impl DeviceBuf<u8> {
    /// Registers the memory with cuFile, which makes repeated reads into it faster.
    ///
    /// # Errors
    /// cuFile refuses (the GPU's window on the bus, BAR1, may be smaller than the buffers); it
    /// then reads through buffers of its own.
    pub fn register(&mut self, cufile: &'static CuFile) -> Result<()> {
        self.device().bind()?;
        let start = pointer(self);
        // SAFETY: there are so many bytes of device memory, freed after the registration's end.
        let done = unsafe { (cufile.functions.buffer_register)(start, self.len(), 0) };
        check(done, || Error::new(ErrorKind::Device, "register GPU memory with cuFile"))?;
        let (device, address) = (self.device().clone(), self.address());
        self.registration = Some(Registration { cufile, device, address });
        Ok(())
    }
}

/// Device memory that cuFile knows until this is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    cufile: &'static CuFile,
    device: Device,
    address: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // What fails here leaves the memory registered, and it is freed all the same.
        if self.device.bind().is_ok() {
            let start = ptr::without_provenance(self.address as usize);
            // SAFETY: registered in `register`, once.
            unsafe { (self.cufile.functions.buffer_deregister)(start) };
        }
    }
}

/// cuFile takes device addresses as pointers.
fn pointer(buffer: &DeviceBuf<u8>) -> *mut c_void {
    ptr::without_provenance_mut(buffer.address() as usize)
}

fn check(status: Status, error: impl FnOnce() -> Error) -> Result<()> {
    match status {
        Status { code: 0, .. } => Ok(()),
        Status { code: CUDA_FAILED, cuda } => {
            Err(error().got(format!("CUDA's error {cuda}")).hint(OTHERWISE))
        }
        Status { code, .. } => Err(error().got(meaning(code)).hint(hint(code))),
    }
}

fn hint(code: c_int) -> &'static str {
    match code {
        5001 => {
            "load the kernel module nvidia-fs, or set `allow_compat_mode` in cufile.json to true; or \
             run with `--transfers async`"
        }
        5002..=5005 => {
            "update nvidia-fs and libcufile to the same release; or run with `--transfers async`"
        }
        5027 => {
            "cuFile asks udev's database which file system a drive has; where there is none, as in \
             containers and small virtual machines, run with `--transfers async`"
        }
        _ => OTHERWISE,
    }
}

/// `CUfileOpError`'s values in words.
fn meaning(code: c_int) -> String {
    let meaning = match code {
        5001 => "nvidia-fs is not loaded, and compatibility mode is off",
        5002..=5005 => "nvidia-fs is not of this library's version",
        5007 => "this platform is not supported",
        5008 => "this file is not supported",
        5009 => "this GPU is not supported",
        5012..=5015 => "this is not the device memory that was expected",
        5016 | 5017 => "more than the memory that can be mapped",
        5018 => "this type of file is not supported",
        5019 | 5020 => "the file is not open for direct I/O",
        5027 => "its drive or file system is unknown to cuFile",
        5025 => "the system does not permit it",
        5034 => "cufile.json turns it off for this file",
        5036 | 5045 => "the GPU's memory cannot be pinned",
        5044 => "an I/O error",
        _ => return format!("cuFile's error {code}"),
    };
    format!("{meaning} (cuFile's error {code})")
}
