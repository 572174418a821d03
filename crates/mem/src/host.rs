//! Memory of this process that a device reaches by itself.
#![allow(unsafe_code)]

use std::ptr::NonNull;

/// A range of this process's memory that devices may be told of: pages of a buffer, or a device's
/// mapped registers.
///
/// # Safety
/// The range is mapped, readable and writable, and stays where it is for as long as the value lives. No
/// reference to bytes of it exists meanwhile: whoever has the value expects devices to write there.
pub unsafe trait HostMemory: Send + Sync {
    /// The first byte.
    fn start(&self) -> NonNull<u8>;

    /// Bytes of the range.
    fn bytes(&self) -> usize;

    /// Whether the range is a device's registers, and no memory.
    fn is_registers(&self) -> bool {
        false
    }
}
