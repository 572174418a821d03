//! Who gives a drive back to the kernel when this process has ended, however it did.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use tiergraph_core::{Error, Result};

use super::PciAddress;

/// Waits until its standard input ends, which it does with the process that has the other end, and then
/// gives the device back: its driver of before finds it again. Nothing that ends a terminal's jobs ends it.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
read -r _
device=/sys/bus/pci/devices/$1
if [ "$(basename "$(readlink "$device/driver")")" = vfio-pci ]; then
    echo "$1" > "$device/driver/unbind"
fi
echo > "$device/driver_override"
echo "$1" > /sys/bus/pci/drivers_probe
"#;

/// A process that gives a drive back to the kernel's driver once this one has ended or has dropped the
/// keeper. It is a shell, so that neither a signal that cannot be caught nor an abort hinders it.
#[derive(Debug)]
pub(super) struct Keeper(Child);

impl Keeper {
    /// Starts a keeper of the drive at `address`.
    ///
    /// # Errors
    /// The system starts no shell.
    pub(super) fn start(address: PciAddress) -> Result<Self> {
        let child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "tiergraph-keeper", &address.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        child.map(Self).map_err(|e: io::Error| Error::io("start the keeper of", address, e))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // If it cannot be awaited, it ends on its own.
        let _ = self.0.wait();
    }
}
