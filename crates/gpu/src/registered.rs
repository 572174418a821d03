//! Memory of somebody else's that kernels reach in place: queues and registers of controllers.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use tiergraph_core::{ByteSize, Result};
use tiergraph_mem::HostMemory;

use crate::failure::OUT_OF_MEMORY;
use crate::pinned::{PORTABLE_AND_MAPPED, device_address, lock_of, no_room};
use crate::{Device, DevicePtr};

/// `CU_MEMHOSTREGISTER_IOMEMORY`: pages of a device's registers, which the driver neither locks nor caches.
const IO_MEMORY: u32 = 4;

/// Host memory that is page-locked, and mapped for kernels, for as long as this lives.
pub struct RegisteredMemory {
    device: Device,
    memory: Box<dyn HostMemory>,
    start: DevicePtr<u8>,
}

impl RegisteredMemory {
    /// Locks and maps `memory`, none of which is registered yet.
    ///
    /// # Errors
    /// The system does not lock so much memory, or the driver does not take memory of this kind.
    pub fn new(device: &Device, memory: impl HostMemory + 'static) -> Result<Self> {
        let (start, bytes) = (address(&memory), memory.bytes());
        let op = lock_of(bytes);
        let of_kind = if memory.is_registers() { IO_MEMORY } else { 0 };
        let register = |d: &crate::driver::Driver| {
            // SAFETY: mapped, and stays where it is while `memory` lives (`HostMemory`).
            unsafe { (d.host_register)(start, bytes, PORTABLE_AND_MAPPED | of_kind) }
        };
        match device.code(register) {
            OUT_OF_MEMORY => return Err(no_room(op)),
            code => device.explain(code, &op)?,
        }
        // From here on, dropping it ends the registration.
        let (device, memory) = (device.clone(), Box::new(memory));
        let mut registered = Self { device, memory, start: DevicePtr::NULL };
        registered.start = device_address(&registered.device, start)?;
        Ok(registered)
    }

    /// Bytes of the memory.
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// The first byte, as the host has it.
    pub(crate) fn host(&self) -> *const u8 {
        self.memory.start().as_ptr()
    }

    /// The pointer by which kernels reach the `T` at byte `at`.
    ///
    /// # Panics
    /// If no byte of the memory is there.
    pub fn ptr<T>(&self, at: usize) -> DevicePtr<T> {
        assert!(at < self.memory.bytes(), "byte {at} of {}", self.memory.bytes());
        self.start.field(at)
    }
}

fn address(memory: &dyn HostMemory) -> *mut c_void {
    NonNull::as_ptr(memory.start()).cast()
}

impl Drop for RegisteredMemory {
    fn drop(&mut self) {
        let start = address(&*self.memory);
        // SAFETY: registered in `new`, and mapped still.
        self.device.release(|d| unsafe { (d.host_unregister)(start) });
    }
}

impl fmt::Debug for RegisteredMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegisteredMemory({})", ByteSize(self.memory.bytes() as u64))
    }
}
