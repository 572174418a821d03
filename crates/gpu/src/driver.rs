//! The driver's functions, with types and names of CUDA's driver API reference; handles are opaque.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::library::functions;

pub(crate) type Code = c_int;
pub(crate) type Handle = *mut c_void;
/// An address in device memory.
pub(crate) type Address = u64;

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
    memory_alloc: "cuMemAlloc_v2"(*mut Address, usize);
    memory_free: "cuMemFree_v2"(Address);
    host_alloc: "cuMemHostAlloc"(*mut *mut c_void, usize, c_uint);
    host_free: "cuMemFreeHost"(*mut c_void);
    host_register: "cuMemHostRegister_v2"(*mut c_void, usize, c_uint);
    host_unregister: "cuMemHostUnregister"(*mut c_void);
    host_device_pointer: "cuMemHostGetDevicePointer_v2"(*mut Address, *mut c_void, c_uint);
    copy_to_device: "cuMemcpyHtoDAsync_v2"(Address, *const c_void, usize, Handle);
    copy_to_host: "cuMemcpyDtoHAsync_v2"(*mut c_void, Address, usize, Handle);
    set_bytes: "cuMemsetD8Async"(Address, u8, usize, Handle);
    copy_inside: "cuMemcpyDtoDAsync_v2"(Address, Address, usize, Handle);
    stream_create: "cuStreamCreateWithPriority"(*mut Handle, c_uint, c_int);
    stream_destroy: "cuStreamDestroy_v2"(Handle);
    stream_sync: "cuStreamSynchronize"(Handle);
    stream_wait: "cuStreamWaitEvent"(Handle, Handle, c_uint);
    event_create: "cuEventCreate"(*mut Handle, c_uint);
    event_record: "cuEventRecord"(Handle, Handle);
    event_query: "cuEventQuery"(Handle);
    event_sync: "cuEventSynchronize"(Handle);
    event_elapsed: "cuEventElapsedTime"(*mut f32, Handle, Handle);
    event_destroy: "cuEventDestroy_v2"(Handle);
    module_load: "cuModuleLoadData"(*mut Handle, *const c_void);
    module_unload: "cuModuleUnload"(Handle);
    module_function: "cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
    function_attribute: "cuFuncSetAttribute"(Handle, c_int, c_int);
    occupancy: "cuOccupancyMaxActiveBlocksPerMultiprocessor"(*mut c_int, Handle, c_int, usize);
    launch: "cuLaunchKernel"(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void);
    error_name: "cuGetErrorName"(Code, *mut *const c_char);
    error_string: "cuGetErrorString"(Code, *mut *const c_char);
}

/// What an event says that has not happened yet.
pub(crate) const NOT_READY: Code = 600;
/// The most bytes of shared memory that a launch may give a block.
pub(crate) const MAX_DYNAMIC_SHARED_SIZE_BYTES: c_int = 8;
/// A stream that does not wait for the default one.
pub(crate) const NON_BLOCKING: c_uint = 1;
