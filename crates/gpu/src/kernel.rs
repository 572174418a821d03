//! Modules of machine code, their kernels, and launches of these.

use std::ffi::{CString, c_void};
use std::ptr;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::driver::{Handle, MAX_DYNAMIC_SHARED_SIZE_BYTES};
use crate::{Device, DevicePtr, Shared, Stream, cubins};

/// Machine code that is loaded on a device, and stays until the device is closed.
#[derive(Debug, Clone)]
pub struct Module {
    device: Device,
    handle: Handle,
}

impl Module {
    /// The machine code of `source` on `device`: loaded before, or compiled before and loaded now, or
    /// compiled and loaded now. `name` is what messages call it.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn compile(device: &Device, name: &str, source: &str, options: &[String]) -> Result<Self> {
        let load = || -> Result<Handle> {
            let folder = cubins::folder();
            let folder = folder.as_deref();
            let cubin = cubins::get(folder, name, source, options, device.architecture())?;
            let mut handle = ptr::null_mut();
            // SAFETY: an ELF image, which names its own length; the device unloads it.
            device.call(&format!("load kernel {name}"), |d| unsafe {
                (d.module_load)(&raw mut handle, cubin.as_ptr().cast())
            })?;
            Ok(handle)
        };
        let handle = device.module_of(source, options, load)?;
        Ok(Self { device: device.clone(), handle })
    }

    /// The kernel that is declared `extern "C"` by this name.
    ///
    /// # Errors
    /// The module has no such kernel.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let text = CString::new(name)
            .map_err(|e| Error::new(ErrorKind::Device, "find kernel").object(name).source(e))?;
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle, which lives as long as the device has the module.
        self.device.call(&format!("find kernel {name}"), |d| unsafe {
            (d.module_function)(&raw mut handle, self.handle, text.as_ptr())
        })?;
        Ok(Kernel { device: self.device.clone(), handle, shared_bytes: 0 })
    }
}

/// A kernel of a module, to be submitted to streams.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The device that has the module.
    device: Device,
    handle: Handle,
    /// Shared memory that a launch gives each block.
    shared_bytes: u32,
}

// SAFETY: the driver takes functions from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// A value that a kernel takes by copy, of the kernel's own layout. No reference is one: the driver
/// would copy where it points from.
pub(crate) trait Parameter {
    /// Where the value's bytes begin.
    fn start(&self) -> *const c_void {
        ptr::from_ref(self).cast()
    }
}

impl<T: Shared> Parameter for T {}
impl Parameter for u32 {}
impl<T> Parameter for DevicePtr<T> {}

/// The grid of a launch: how many thread blocks it has, and how many threads each of them.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    /// The number of thread blocks; a launch of 0 does nothing.
    pub blocks: u32,
    /// The number of threads of a block.
    pub threads: u32,
}

impl Grid {
    /// A grid of one thread for each of `items`, in blocks of `threads`.
    pub fn over(items: usize, threads: u32) -> Self {
        Self { blocks: items.div_ceil(threads as usize) as u32, threads }
    }
}

impl Kernel {
    /// The kernel with `bytes` of shared memory a block that its source declares `extern`, which may be more than
    /// the 48 KiB that a source can declare.
    ///
    /// # Errors
    /// More than a block has on this device.
    pub(crate) fn with_shared_memory(self, bytes: u32) -> Result<Self> {
        // SAFETY: a function of a module that is loaded.
        self.device.call("give a kernel shared memory", |d| unsafe {
            (d.function_attribute)(self.handle, MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32)
        })?;
        Ok(Self { shared_bytes: bytes, ..self })
    }

    /// How many thread blocks of `threads` threads the whole device runs at once.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn resident_blocks(&self, threads: u32) -> Result<u32> {
        let device = &self.device;
        let mut blocks = 0;
        // SAFETY: writes one integer.
        device.call("ask a kernel's occupancy", |d| unsafe {
            (d.occupancy)(&raw mut blocks, self.handle, threads as i32, self.shared_bytes as usize)
        })?;
        Ok(blocks as u32 * device.multiprocessors())
    }

    /// Submits the kernel with its `parameters` to `stream`.
    ///
    /// # Errors
    /// Any error of the driver; an error inside the kernel is reported by a later call.
    ///
    /// # Safety
    /// The kernel takes parameters of this number and these layouts. Every address in them is of
    /// memory that lives until the stream has run the kernel, is as long as the kernel takes it to
    /// be, and is written by nobody else meanwhile unless by atomics.
    pub(crate) unsafe fn launch(
        &self,
        stream: &Stream,
        grid: Grid,
        parameters: &[&dyn Parameter],
    ) -> Result<()> {
        if grid.blocks == 0 {
            return Ok(());
        }
        let mut parameters: Vec<*mut c_void> =
            parameters.iter().map(|parameter| parameter.start().cast_mut()).collect();
        // SAFETY: the driver copies the parameters before it returns; the rest is promised.
        self.device.submit("start a kernel", |d| unsafe {
            (d.launch)(
                self.handle,
                grid.blocks,
                1,
                1,
                grid.threads,
                1,
                1,
                self.shared_bytes,
                stream.raw(),
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        })
    }
}
