//! Compiled modules, and launches.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::driver::Handle;
use crate::{Device, Stream, cubins};

/// Machine code on a device.
#[derive(Debug, Clone)]
pub struct Module(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    device: Device,
    handle: Handle,
}

// SAFETY: the driver takes modules and functions from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Module {
    /// Compiles `source` for `device`, or takes what was compiled before, and loads it.
    ///
    /// # Errors
    /// No compiler, its log, whatever the driver gives.
    pub fn compile(device: &Device, name: &str, source: &str, options: &[String]) -> Result<Self> {
        let folder = cubins::folder();
        let cubin = cubins::get(folder.as_deref(), name, source, options, device.architecture())?;
        let mut handle = ptr::null_mut();
        // SAFETY: an ELF image, which names its own length; unloaded in `drop`.
        device.call(&format!("load kernel {name}"), |d| unsafe {
            (d.module_load)(&raw mut handle, cubin.as_ptr().cast())
        })?;
        Ok(Self(Arc::new(Loaded { device: device.clone(), handle })))
    }

    /// The kernel that is declared `extern "C"` by this name.
    ///
    /// # Errors
    /// There is none.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let text = CString::new(name)
            .map_err(|e| Error::new(ErrorKind::Device, "find kernel").object(name).source(e))?;
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle, which lives as long as the module.
        self.0.device.call(&format!("find kernel {name}"), |d| unsafe {
            (d.module_function)(&raw mut handle, self.0.handle, text.as_ptr())
        })?;
        Ok(Kernel { module: self.clone(), handle })
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: loaded in `compile`, and no kernel of it is left.
        self.device.release(|d| unsafe { (d.module_unload)(self.handle) });
    }
}

/// A kernel of a module.
#[derive(Debug, Clone)]
pub struct Kernel {
    module: Module,
    handle: Handle,
}

// SAFETY: as `Loaded`.
unsafe impl Send for Kernel {}
// SAFETY: as `Loaded`.
unsafe impl Sync for Kernel {}

/// How many blocks of how many threads.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    /// Blocks; a launch of 0 does nothing.
    pub blocks: u32,
    /// Threads a block.
    pub threads: u32,
}

impl Grid {
    /// One thread an item.
    pub fn over(items: usize, threads: u32) -> Self {
        Self { blocks: items.div_ceil(threads as usize) as u32, threads }
    }
}

impl Kernel {
    /// Blocks of `threads` that the whole device holds at once.
    ///
    /// # Errors
    /// Whatever the driver gives.
    pub fn resident_blocks(&self, threads: u32) -> Result<u32> {
        let device = &self.module.0.device;
        let mut blocks = 0;
        // SAFETY: writes one integer.
        device.call("ask a kernel's occupancy", |d| unsafe {
            (d.occupancy)(&raw mut blocks, self.handle, threads as i32, 0)
        })?;
        Ok(blocks as u32 * device.multiprocessors())
    }

    /// Gives the kernel to `stream`; each of `parameters` is the bytes of one.
    ///
    /// # Errors
    /// Whatever the driver gives; what fails in the kernel is given by a later call.
    ///
    /// # Safety
    /// The kernel takes parameters of this number and these layouts. Every address in them is of
    /// memory that lives until the stream has run the kernel, is as long as the kernel takes it to
    /// be, and is written by nobody else meanwhile unless by atomics.
    pub(crate) unsafe fn launch(
        &self,
        stream: &Stream,
        grid: Grid,
        parameters: &[&[u8]],
    ) -> Result<()> {
        if grid.blocks == 0 {
            return Ok(());
        }
        let mut parameters: Vec<*mut c_void> =
            parameters.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
        // SAFETY: the driver copies the parameters before it returns; the rest is promised.
        self.module.0.device.submit("start a kernel", |d| unsafe {
            (d.launch)(
                self.handle,
                grid.blocks,
                1,
                1,
                grid.threads,
                1,
                1,
                0,
                stream.raw(),
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        })
    }
}
