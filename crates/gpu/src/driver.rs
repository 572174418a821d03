//! The driver's functions, read from `libcuda` when the first device is opened.
//!
//! Types and names as in CUDA's driver API reference; handles are opaque pointers.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::failure::check;
use crate::library::{functions, open};

pub(crate) type Code = c_int;
pub(crate) type Handle = *mut c_void;
/// An address in device memory.
pub(crate) type DevicePtr = u64;

functions! {
    /// `libcuda`.
    Driver, Code;
    init: "cuInit"(c_uint);
    driver_version: "cuDriverGetVersion"(*mut c_int);
    device_count: "cuDeviceGetCount"(*mut c_int);
    device_get: "cuDeviceGet"(*mut c_int, c_int);
    device_name: "cuDeviceGetName"(*mut c_char, c_int, c_int);
    device_attribute: "cuDeviceGetAttribute"(*mut c_int, c_int, c_int);
    context_retain: "cuDevicePrimaryCtxRetain"(*mut Handle, c_int);
    context_release: "cuDevicePrimaryCtxRelease_v2"(c_int);
    context_set: "cuCtxSetCurrent"(Handle);
    context_sync: "cuCtxSynchronize"();
    priority_range: "cuCtxGetStreamPriorityRange"(*mut c_int, *mut c_int);
    memory_info: "cuMemGetInfo_v2"(*mut usize, *mut usize);
    memory_alloc: "cuMemAlloc_v2"(*mut DevicePtr, usize);
    memory_free: "cuMemFree_v2"(DevicePtr);
    host_alloc: "cuMemHostAlloc"(*mut *mut c_void, usize, c_uint);
    host_free: "cuMemFreeHost"(*mut c_void);
    host_device_pointer: "cuMemHostGetDevicePointer_v2"(*mut DevicePtr, *mut c_void, c_uint);
    copy_to_device: "cuMemcpyHtoDAsync_v2"(DevicePtr, *const c_void, usize, Handle);
    copy_to_host: "cuMemcpyDtoHAsync_v2"(*mut c_void, DevicePtr, usize, Handle);
    set_bytes: "cuMemsetD8Async"(DevicePtr, u8, usize, Handle);
    copy_inside: "cuMemcpyDtoDAsync_v2"(DevicePtr, DevicePtr, usize, Handle);
    stream_create: "cuStreamCreateWithPriority"(*mut Handle, c_uint, c_int);
    stream_destroy: "cuStreamDestroy_v2"(Handle);
    stream_sync: "cuStreamSynchronize"(Handle);
    event_create: "cuEventCreate"(*mut Handle, c_uint);
    event_record: "cuEventRecord"(Handle, Handle);
    event_query: "cuEventQuery"(Handle);
    event_sync: "cuEventSynchronize"(Handle);
    event_elapsed: "cuEventElapsedTime"(*mut f32, Handle, Handle);
    event_destroy: "cuEventDestroy_v2"(Handle);
    module_load: "cuModuleLoadData"(*mut Handle, *const c_void);
    module_unload: "cuModuleUnload"(Handle);
    module_function: "cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
    occupancy: "cuOccupancyMaxActiveBlocksPerMultiprocessor"(*mut c_int, Handle, c_int, usize);
    launch: "cuLaunchKernel"(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void);
    error_name: "cuGetErrorName"(Code, *mut *const c_char);
    error_string: "cuGetErrorString"(Code, *mut *const c_char);
}

/// What an event says that has not happened yet.
pub(crate) const NOT_READY: Code = 600;
/// A stream that does not wait for the default one.
pub(crate) const NON_BLOCKING: c_uint = 1;
pub(crate) const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
/// Of the driver API that is used here: CUDA 12.0.
const OLDEST_DRIVER: c_int = 12000;

/// The driver; the same answer, or the same reason, at every call.
pub(crate) fn driver() -> Result<&'static Driver> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    let loaded = DRIVER.get_or_init(|| load().map_err(|e| e.to_string()));
    loaded.as_ref().map_err(|reason| {
        let (reason, hint) = reason.split_once("\n\nhint: ").unwrap_or((reason, USE_CPU));
        Error::new(ErrorKind::Device, "use a GPU").got(reason).hint(hint)
    })
}

pub(crate) const USE_CPU: &str = "install NVIDIA's driver, or run with `--device cpu`";

fn load() -> Result<Driver> {
    let library = open("CUDA's driver", &NAMES, USE_CPU)?;
    let driver = Driver::read(library).map_err(|missing| old(&format!("one without {missing}")))?;
    // The version first: an old driver may not even start beside a newer kernel module.
    let version = version(&driver)?;
    if version < OLDEST_DRIVER {
        return Err(old(&format!("one for CUDA {}", release(version))));
    }
    // SAFETY: `cuInit` takes 0.
    check(&driver, unsafe { (driver.init)(0) }, "start CUDA")?;
    Ok(driver)
}

/// Of the driver API: 1000 × major + 10 × minor.
pub(crate) fn version(driver: &Driver) -> Result<c_int> {
    let mut version = 0;
    // SAFETY: writes one integer, and may be called before `cuInit`.
    check(driver, unsafe { (driver.driver_version)(&raw mut version) }, "ask CUDA's version")?;
    Ok(version)
}

pub(crate) fn release(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn old(got: &str) -> Error {
    Error::new(ErrorKind::Device, "use CUDA's driver")
        .expected("a driver for CUDA 12.0 or newer")
        .got(got)
        .hint("update NVIDIA's driver, or run with `--device cpu`")
}
