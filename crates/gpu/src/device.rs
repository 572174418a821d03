//! A GPU and its primary context, which PyTorch in the same process shares.

use std::collections::HashMap;
use std::ffi::{CStr, c_int};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tiergraph_core::{Error, ErrorKind, Result};

use crate::driver::{Code, Driver, Handle};
use crate::failure::check;
use crate::start::driver;

/// `cuDeviceGetAttribute`'s numbers.
const MULTIPROCESSORS: c_int = 16;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;

/// A GPU architecture that machine code is compiled for: `sm_90` is compute capability 9.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Architecture {
    /// The major number of the compute capability: 9 in 9.0.
    pub major: u32,
    /// The minor number of the compute capability: 0 in 9.0.
    pub minor: u32,
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.major, self.minor)
    }
}

/// How much memory a GPU has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Bytes that no process has allocated.
    pub free: u64,
    /// Bytes of the whole memory.
    pub total: u64,
}

/// How much work the streams of an opened GPU were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submissions {
    /// How many kernels, copies and fills were submitted.
    pub count: u64,
    /// How long the host took to submit them.
    pub host_time: Duration,
}

/// An opened GPU; cheap to clone, and shared by all threads.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    driver: &'static Driver,
    ordinal: c_int,
    context: Handle,
    name: String,
    architecture: Architecture,
    multiprocessors: u32,
    submissions: AtomicU64,
    submitting_ns: AtomicU64,
    /// Loaded modules, by source and options.
    modules: Mutex<HashMap<(String, Vec<String>), Handle>>,
}

// SAFETY: the driver's functions may be called from any thread; a context is bound before each.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Device {
    /// How many GPUs the machine has.
    ///
    /// # Errors
    /// No driver, or one that is too old.
    pub fn count() -> Result<usize> {
        let driver = driver()?;
        let mut count = 0;
        // SAFETY: writes one integer.
        check(driver, unsafe { (driver.device_count)(&raw mut count) }, "count GPUs")?;
        Ok(count as usize)
    }

    /// Opens GPU `ordinal` by retaining its primary context.
    ///
    /// # Errors
    /// No driver, or one that is too old; no such GPU; any error of the driver.
    pub fn open(ordinal: usize) -> Result<Self> {
        let driver = driver()?;
        let count = Self::count()?;
        if ordinal >= count {
            return Err(Error::new(ErrorKind::Device, "open GPU")
                .object(ordinal)
                .expected(format!("a number below {count}, of the GPUs that are there"))
                .hint("`CUDA_VISIBLE_DEVICES` may hide some; or run with `--device cpu`"));
        }
        let (mut device, mut context) = (0, ptr::null_mut());
        // SAFETY: writes one integer; the ordinal is below the count.
        let found = unsafe { (driver.device_get)(&raw mut device, ordinal as c_int) };
        check(driver, found, "open a GPU")?;
        // SAFETY: writes one handle, released in `drop`.
        let retained = unsafe { (driver.context_retain)(&raw mut context, device) };
        check(driver, retained, "open a GPU's context")?;
        let attribute = |number| attribute(driver, device, number);
        Ok(Self(Arc::new(Inner {
            name: name(driver, device)?,
            architecture: Architecture { major: attribute(MAJOR)?, minor: attribute(MINOR)? },
            multiprocessors: attribute(MULTIPROCESSORS)?,
            driver,
            ordinal: device,
            context,
            submissions: AtomicU64::new(0),
            submitting_ns: AtomicU64::new(0),
            modules: Mutex::default(),
        })))
    }

    /// The GPU's product name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The architecture that kernels are compiled for.
    pub fn architecture(&self) -> Architecture {
        self.0.architecture
    }

    /// How many streaming multiprocessors the GPU has.
    pub fn multiprocessors(&self) -> u32 {
        self.0.multiprocessors
    }

    /// How much of the GPU's memory is free now, and how much it has.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn memory(&self) -> Result<DeviceMemory> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes.
        self.call("ask for free GPU memory", |d| unsafe {
            (d.memory_info)(&raw mut free, &raw mut total)
        })?;
        Ok(DeviceMemory { free: free as u64, total: total as u64 })
    }

    /// How much work the device's streams were given since it was opened.
    pub fn submissions(&self) -> Submissions {
        Submissions {
            count: self.0.submissions.load(Ordering::Relaxed),
            host_time: Duration::from_nanos(self.0.submitting_ns.load(Ordering::Relaxed)),
        }
    }

    /// Waits until all work that was submitted to this device has ended.
    ///
    /// # Errors
    /// Any error of a kernel or a copy that was not reported before.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: takes nothing.
        self.call("finish the GPU's work", |d| unsafe { (d.context_sync)() })
    }

    /// The module that `load` made of a source with these options, now or before.
    pub(crate) fn module_of(
        &self,
        source: &str,
        options: &[String],
        load: impl FnOnce() -> Result<Handle>,
    ) -> Result<Handle> {
        let mut modules = self.0.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source.to_owned(), options.to_vec());
        if let Some(&handle) = modules.get(&key) {
            return Ok(handle);
        }
        let handle = load()?;
        modules.insert(key, handle);
        Ok(handle)
    }

    /// The driver's number of it.
    pub(crate) fn ordinal(&self) -> c_int {
        self.0.ordinal
    }

    /// Binds this device's context to the thread, for libraries that work in the current one.
    pub(crate) fn bind(&self) -> Result<()> {
        self.call("use a GPU's context", |_| 0)
    }

    /// Calls the driver with this device's context bound to the thread.
    pub(crate) fn call(&self, op: &str, call: impl FnOnce(&Driver) -> Code) -> Result<()> {
        self.explain(self.code(call), op)
    }

    /// As [`call`](Self::call), for what a stream is given without waiting for it; counts it.
    pub(crate) fn submit(&self, op: &str, call: impl FnOnce(&Driver) -> Code) -> Result<()> {
        let begin = Instant::now();
        self.call(op, call)?;
        let took = begin.elapsed().as_nanos() as u64;
        self.0.submissions.fetch_add(1, Ordering::Relaxed);
        self.0.submitting_ns.fetch_add(took, Ordering::Relaxed);
        Ok(())
    }

    /// As [`call`](Self::call), with a code that the caller reads itself.
    pub(crate) fn code(&self, call: impl FnOnce(&Driver) -> Code) -> Code {
        let driver = self.0.driver;
        // SAFETY: the context is retained while `self` lives.
        match unsafe { (driver.context_set)(self.0.context) } {
            0 => call(driver),
            code => code,
        }
    }

    /// As [`call`](Self::call), for destructors, which have nobody to give an error to: what fails
    /// there fails again at the next call.
    pub(crate) fn release(&self, call: impl FnOnce(&Driver) -> Code) {
        let _ = self.call("release GPU resources", call);
    }

    /// A driver call whose code the caller reads itself.
    pub(crate) fn ask(&self, call: impl FnOnce(&Driver) -> Code) -> Code {
        call(self.0.driver)
    }

    pub(crate) fn explain(&self, code: Code, op: &str) -> Result<()> {
        check(self.0.driver, code, op)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({} {}, {})", self.0.ordinal, self.0.name, self.0.architecture)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let modules = self.modules.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the context is retained still.
        if unsafe { (self.driver.context_set)(self.context) } == 0 {
            for &module in modules.values() {
                // SAFETY: loaded once, and no kernel of it is left: each holds the device.
                unsafe { (self.driver.module_unload)(module) };
            }
        }
        // SAFETY: retained once in `open`.
        unsafe { (self.driver.context_release)(self.ordinal) };
    }
}

fn name(driver: &Driver, device: c_int) -> Result<String> {
    let mut bytes = [0; 128];
    // SAFETY: writes at most 128 bytes, and a terminating zero among them.
    let asked = unsafe { (driver.device_name)(bytes.as_mut_ptr(), 128, device) };
    check(driver, asked, "ask a GPU's name")?;
    // SAFETY: as above.
    Ok(unsafe { CStr::from_ptr(bytes.as_ptr()) }.to_string_lossy().into_owned())
}

fn attribute(driver: &Driver, device: c_int, number: c_int) -> Result<u32> {
    let mut value = 0;
    // SAFETY: writes one integer.
    let asked = unsafe { (driver.device_attribute)(&raw mut value, number, device) };
    check(driver, asked, "ask what a GPU has")?;
    Ok(value as u32)
}
