//! Green contexts (CUDA 12.5): some of a GPU's multiprocessors, which a stream's kernels keep to.
//!
//! A green context shares the device's primary context: memory, events and modules are the
//! primary's, which stays bound to the thread. What confines kernels is the stream that they are
//! given to, whatever context is current.

use std::ffi::{c_int, c_uint};
use std::fmt;
use std::mem::offset_of;
use std::ptr;
use std::sync::OnceLock;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::Device;
use crate::driver::{Code, Handle, NON_BLOCKING};
use crate::library::{functions, open};
use crate::start::{NAMES, USE_CPU, driver, release, version};

/// `CUdevResource`; of what it says, only the number of multiprocessors means the same in all
/// versions. The driver alone writes it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Resource {
    kind: c_int,
    internal: [u8; 92],
    multiprocessors: c_uint,
    others: [u8; 44],
}

const _: () = assert!(size_of::<Resource>() == 144 && offset_of!(Resource, multiprocessors) == 96);

functions! {
    /// What `libcuda` has for green contexts.
    Functions, Code;
    resource: "cuDeviceGetDevResource"(c_int, *mut Resource, c_int);
    split: "cuDevSmResourceSplitByCount"(*mut Resource, *mut c_uint, *const Resource, *mut Resource, c_uint, c_uint);
    describe: "cuDevResourceGenerateDesc"(*mut Handle, *mut Resource, c_uint);
    create: "cuGreenCtxCreate"(*mut Handle, Handle, c_int, c_uint);
    destroy: "cuGreenCtxDestroy"(Handle);
    stream_create: "cuGreenCtxStreamCreate"(*mut Handle, Handle, c_uint, c_int);
}

/// The oldest version of the driver API that has all of these functions: CUDA 12.5.
const OLDEST_DRIVER: c_int = 12050;
/// `CU_DEV_RESOURCE_TYPE_SM`.
const MULTIPROCESSORS: c_int = 1;
/// `CU_GREEN_CTX_DEFAULT_STREAM`, which is required.
const DEFAULT_STREAM: c_uint = 1;
const NOT_SUPPORTED: Code = 801;
/// The GPU cannot be divided so.
const NO_SUCH_DIVISION: Code = 915;
const OP: &str = "set multiprocessors apart for a stream";

/// A share of a device's multiprocessors.
pub(crate) struct GreenContext {
    device: Device,
    functions: &'static Functions,
    handle: Handle,
    multiprocessors: u32,
}

/// Why there is no green context.
pub(crate) enum Refused {
    /// The driver or the GPU has none.
    Unsupported(String),
    /// What was asked for, or the driver, failed.
    Failed(Error),
}

impl Refused {
    /// The error of a device that has a green context.
    pub fn into_error(self) -> Error {
        match self {
            Self::Unsupported(why) => Error::new(ErrorKind::Device, OP).got(why),
            Self::Failed(error) => error,
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl GreenContext {
    /// A context of at most `most` multiprocessors: the largest such group that the device sets apart.
    pub fn new(device: &Device, most: u32) -> Result<Self, Refused> {
        let functions = functions()?;
        let mut group = divide(device, functions, most)?;
        let (mut description, mut handle) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: writes one handle, from one resource, which the driver made.
        asked(device, unsafe { (functions.describe)(&raw mut description, &raw mut group, 1) })?;
        let create = functions.create;
        // SAFETY: writes one handle, destroyed in `drop`; the description is of this device.
        let made = device.code(|_| unsafe {
            create(&raw mut handle, description, device.ordinal(), DEFAULT_STREAM)
        });
        asked(device, made)?;
        let (device, multiprocessors) = (device.clone(), group.multiprocessors);
        Ok(Self { device, functions, handle, multiprocessors })
    }

    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// A stream whose kernels run on these multiprocessors; it ends before the green context.
    pub fn stream(&self, priority: c_int) -> Result<Handle, Refused> {
        let mut stream = ptr::null_mut();
        let create = self.functions.stream_create;
        // SAFETY: writes one handle; the green context is alive.
        let made = self
            .device
            .code(|_| unsafe { create(&raw mut stream, self.handle, NON_BLOCKING, priority) });
        asked(&self.device, made).map(|()| stream)
    }
}

// SAFETY: the driver takes a green context from any thread.
unsafe impl Send for GreenContext {}
// SAFETY: as above.
unsafe impl Sync for GreenContext {}

impl fmt::Debug for GreenContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GreenContext({} multiprocessors)", self.multiprocessors)
    }
}

impl Drop for GreenContext {
    fn drop(&mut self) {
        let destroy = self.functions.destroy;
        // SAFETY: made in `new`; its streams have ended.
        self.device.release(|_| unsafe { destroy(self.handle) });
    }
}

/// The functions, where the driver has them.
fn functions() -> Result<&'static Functions, Refused> {
    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
    if let Some(functions) = FUNCTIONS.get() {
        return Ok(functions);
    }
    let version = version(driver()?)?;
    if version < OLDEST_DRIVER {
        let (has, needs) = (release(version), release(OLDEST_DRIVER));
        let why = format!("the driver is for CUDA {has}, green contexts need {needs}");
        return Err(Refused::Unsupported(why));
    }
    let functions = Functions::read(open("CUDA's driver", &NAMES, USE_CPU)?)
        .map_err(|missing| Refused::Unsupported(format!("the driver has no {missing}")))?;
    Ok(FUNCTIONS.get_or_init(|| functions))
}

/// The largest group of at most `most` multiprocessors. The driver rounds up, to groups whose size
/// depends on the GPU and on nothing that all versions tell.
fn divide(device: &Device, functions: &Functions, most: u32) -> Result<Resource, Refused> {
    let empty = Resource { kind: 0, internal: [0; 92], multiprocessors: 0, others: [0; 44] };
    let mut all = empty;
    // SAFETY: writes one resource.
    asked(device, unsafe {
        (functions.resource)(device.ordinal(), &raw mut all, MULTIPROCESSORS)
    })?;
    let mut fewest = None;
    for count in (1..=most.max(1)).rev() {
        let (mut group, mut groups) = (empty, 1);
        // SAFETY: writes one resource, for which there is room; the rest may be null.
        let code = unsafe {
            (functions.split)(
                &raw mut group,
                &raw mut groups,
                &raw const all,
                ptr::null_mut(),
                0,
                count,
            )
        };
        match code {
            NO_SUCH_DIVISION => continue,
            code => asked(device, code)?,
        }
        if groups == 1 && group.multiprocessors <= most {
            return Ok(group);
        }
        fewest = (groups == 1).then_some(group.multiprocessors).or(fewest);
    }
    let Some(fewest) = fewest else {
        return Err(Refused::Unsupported("this GPU's multiprocessors cannot be divided".into()));
    };
    Err(Refused::Failed(
        Error::new(ErrorKind::Input, OP)
            .expected(format!("at least {fewest}, the fewest that this GPU sets apart"))
            .got(most),
    ))
}

fn asked(device: &Device, code: Code) -> Result<(), Refused> {
    match code {
        NOT_SUPPORTED => {
            Err(Refused::Unsupported("the driver has no green contexts for this GPU".into()))
        }
        code => Ok(device.explain(code, OP)?),
    }
}
