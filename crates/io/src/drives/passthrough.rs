//! NVMe passthrough: drives that stay with the kernel's driver, which hands commands of a ring on to them as they
//! are (K. Joshi et al., "I/O Passthru", FAST '24).
//!
//! An engine has one ring for all of its drives, of large entries (`SQE128`, `CQE32`), so that a system call
//! hands commands to all of them and brings completions of all. Where the driver has poll queues, the ring
//! polls (`IOPOLL`): that system call looks for completions at the drive, which sends no interrupts. Staging
//! memory is registered with the ring, so that its pages are looked up once and not for each command.
//!
//! # Memory safety
//! The kernel has pinned the pages that a command reads to until it has ended. Destinations are not referred
//! to meanwhile (`DriveQueues::reach`), and staging memory is shared memory, to which no reference exists. What
//! commands in flight may still write to is never freed.
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_mem::{AlignedBuf, HostMemory};
use tiergraph_nvme::command::io::{FLUSH, READ, WRITE};
use tiergraph_nvme::passthrough::NVME_URING_CMD_IO;
use tiergraph_nvme::{
    Command, Namespace, NamespaceDevice, PassthroughCommand, SharedMemory, Status, Timing,
};

use super::Drive;
use super::queues::{Access, COMMANDS, Completed, DriveQueues, span_bytes, wait};
use crate::engine::uring::ring::{enter, refusal};

/// Bytes of a read that goes to its destination.
const DIRECT_BYTES: usize = 128 << 10;

/// How commands of rings are done, as far as the kernel has a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mode {
    /// Completions are polled; otherwise the drive interrupts a processor.
    is_polled: bool,
    /// Staging memory is registered with the ring.
    is_registered: bool,
}

/// Devices of namespaces, and how this kernel does their commands.
#[derive(Debug)]
pub(super) struct Devices {
    devices: Arc<Vec<NamespaceDevice>>,
    mode: Mode,
    why: String,
}

impl Devices {
    /// Finds out how this kernel does commands for `devices`, which are `drives`, by reading a block of each.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it does none.
    pub(super) fn open(
        devices: Vec<NamespaceDevice>,
        drives: &[Drive],
        timing: Timing,
    ) -> Result<Self> {
        let devices = Arc::new(devices);
        let try_out = |mode| try_out(&devices, drives, mode, timing);
        let mut mode = Mode { is_polled: true, is_registered: false };
        let mut why = match why_not_polled(&devices) {
            None => try_out(mode).err().map(|error| first_line(&error)),
            some => some,
        };
        if let Some(why) = &mut why {
            mode.is_polled = false;
            try_out(mode)?;
            *why = format!("completions come by interrupts: {why}");
        }
        let mut why = why.unwrap_or_else(|| "completions are polled".into());
        mode.is_registered = true;
        if let Err(error) = try_out(mode) {
            mode.is_registered = false;
            why = format!("{why}; staging memory is not registered: {}", first_line(&error));
        }
        Ok(Self { devices, mode, why })
    }
}

impl Access for Devices {
    fn queues(&self) -> Result<Box<dyn DriveQueues>> {
        Ok(Box::new(Ring::new(&self.devices, self.mode)?))
    }

    fn engine(&self) -> &'static str {
        "passthrough"
    }

    fn why(&self) -> Option<String> {
        Some(self.why.clone())
    }
}

/// Reads a block of each device.
fn try_out(
    devices: &Arc<Vec<NamespaceDevice>>,
    drives: &[Drive],
    mode: Mode,
    timing: Timing,
) -> Result<()> {
    let mut ring = Ring::new(devices, mode)?;
    for (number, drive) in drives.iter().enumerate() {
        ring.read(number, 0, drive.namespace.block_bytes as usize, None)?;
        let read = wait(&mut ring, drive, timing.command)?;
        read.result.map_err(|e| {
            let hint = match e.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => "run as root",
                _ => TOO_OLD,
            };
            Error::io("read by NVMe passthrough from", &drive.name, e).hint(hint)
        })?;
    }
    Ok(())
}

/// Why the completions of commands for `devices` cannot be polled; `None` if they may be.
fn why_not_polled(devices: &[NamespaceDevice]) -> Option<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if !may_poll(&release) {
        return Some(format!("polling needs Linux 6.6 or newer, and this is {}", release.trim()));
    }
    let without = devices.iter().find(|device| !device.has_poll_queues())?;
    Some(format!(
        "the kernel's driver has no poll queues for `{}` (`nvme.poll_queues=4` at boot)",
        without.name()
    ))
}

/// Whether a kernel of this release polls for commands of rings safely. From 6.1 on it polls; up to 6.5 it asks the
/// block layer by what may be memory of a command that has ended, or no such memory at all, which ends in an oops
/// (commits 9408d8a37e6c and a7a7dabb5dd7 of Linux).
fn may_poll(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>());
    let (major, minor) = (numbers.next(), numbers.next());
    matches!((major, minor), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 6))
}

fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// A ring by which an engine asks its devices.
struct Ring {
    ring: IoUring<squeue::Entry128, cqueue::Entry32>,
    mode: Mode,
    queues: Vec<DeviceQueue>,
    in_flight: usize,
    /// Kept open.
    _devices: Arc<Vec<NamespaceDevice>>,
}

/// The slots of a device.
struct DeviceQueue {
    namespace: Namespace,
    staging: SharedMemory,
    span_bytes: usize,
    free: Vec<u16>,
}

impl DeviceQueue {
    fn new(namespace: Namespace) -> Result<Self> {
        let span_bytes = span_bytes(&namespace);
        let staging = SharedMemory::zeroed(COMMANDS * span_bytes)?;
        Ok(Self { namespace, staging, span_bytes, free: (0..COMMANDS as u16).rev().collect() })
    }

    /// The spans, each as a buffer of its own: Linux 6.1 refuses commands to a part of a buffer that has more
    /// pages than a command may move (`blk_rq_map_user_bvec` in block/blk-map.c).
    fn spans(&self) -> impl Iterator<Item = libc::iovec> {
        let span = |slot: usize| {
            let begin = slot * self.span_bytes;
            let span = self.staging.part(begin..begin + self.span_bytes);
            libc::iovec { iov_base: span.start().as_ptr().cast(), iov_len: span.len() }
        };
        (0..COMMANDS).map(span)
    }
}

/// What a command needs beside itself.
struct Data {
    /// The address in this process, if not that of the slot's span.
    address: Option<u64>,
    bytes: u32,
}

impl Ring {
    fn new(devices: &Arc<Vec<NamespaceDevice>>, mode: Mode) -> Result<Self> {
        let refused = |e: io::Error| {
            Error::new(ErrorKind::Io, "set up an io_uring for NVMe passthrough")
                .got(refusal(&e))
                .hint(TOO_OLD)
        };
        let ring = build(devices.len() * COMMANDS, mode.is_polled).map_err(refused)?;
        let descriptors: Vec<_> = devices.iter().map(|device| device.file().as_raw_fd()).collect();
        ring.submitter().register_files(&descriptors).map_err(refused)?;
        let queues = devices.iter().map(|device| DeviceQueue::new(device.namespace()));
        let queues = queues.collect::<Result<Vec<_>>>()?;
        if mode.is_registered {
            let buffers: Vec<_> = queues.iter().flat_map(DeviceQueue::spans).collect();
            // SAFETY: the memory is mapped until this is dropped, and the ring with it.
            unsafe { ring.submitter().register_buffers(&buffers) }.map_err(refused)?;
        }
        Ok(Self { ring, mode, queues, in_flight: 0, _devices: Arc::clone(devices) })
    }

    /// Gives a command to the ring, which has an entry for every slot; `None` without a free slot.
    fn push(&mut self, drive: usize, command: &Command, data: &Data) -> Result<Option<u16>> {
        let queue = &mut self.queues[drive];
        let Some(slot) = queue.free.pop() else { return Ok(None) };
        let span = queue.staging.address() + (usize::from(slot) * queue.span_bytes) as u64;
        let is_staged = data.address.is_none() && data.bytes > 0;
        let address = if data.bytes > 0 { data.address.unwrap_or(span) } else { 0 };
        let command = PassthroughCommand::new(command, address, data.bytes);
        // The command's area in an entry of 128 bytes is its last 80.
        let mut area = [0; 80];
        area[..size_of::<PassthroughCommand>()].copy_from_slice(bytemuck::bytes_of(&command));
        let buffer = drive * COMMANDS + usize::from(slot);
        let buffer = (is_staged && self.mode.is_registered).then_some(buffer as u16);
        let entry = opcode::UringCmd80::new(types::Fixed(drive as u32), NVME_URING_CMD_IO)
            .cmd(area)
            .buf_index(buffer)
            .build()
            .user_data((drive as u64) << 16 | u64::from(slot));
        // SAFETY: `data` is the slot's span, which is never freed while a command is in flight, or a buffer of
        // which the caller has promised that (`reach`).
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            queue.free.push(slot);
            return Ok(None);
        }
        self.in_flight += 1;
        Ok(Some(slot))
    }

    /// Asks for blocks to be moved.
    fn move_blocks(
        &mut self,
        opcode: u8,
        drive: usize,
        offset: u64,
        data: &Data,
    ) -> Result<Option<u16>> {
        let namespace = self.queues[drive].namespace;
        let command = namespace.move_blocks(opcode, offset, data.bytes.into())?;
        self.push(drive, &command, data)
    }
}

impl DriveQueues for Ring {
    fn slots(&self, _drive: usize) -> usize {
        COMMANDS
    }

    fn next_slot(&self, drive: usize) -> Option<u16> {
        self.queues[drive].free.last().copied()
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn direct_bytes(&self) -> usize {
        DIRECT_BYTES
    }

    unsafe fn reach(&mut self, _drive: usize, buffer: &mut AlignedBuf) -> Result<u64> {
        Ok(buffer.start().as_ptr().expose_provenance() as u64)
    }

    fn read(
        &mut self,
        drive: usize,
        offset: u64,
        len: usize,
        to: Option<u64>,
    ) -> Result<Option<u16>> {
        let block_bytes = self.queues[drive].namespace.block_bytes as usize;
        let data = Data { address: to, bytes: len.next_multiple_of(block_bytes) as u32 };
        self.move_blocks(READ, drive, offset, &data)
    }

    fn write(&mut self, drive: usize, offset: u64, len: usize) -> Result<Option<u16>> {
        self.move_blocks(WRITE, drive, offset, &Data { address: None, bytes: len as u32 })
    }

    fn flush(&mut self, drive: usize) -> Result<Option<u16>> {
        let nsid = self.queues[drive].namespace.id;
        let flush = Command { opcode: FLUSH, nsid, ..Command::default() };
        self.push(drive, &flush, &Data { address: None, bytes: 0 })
    }

    fn span(&self, drive: usize, slot: u16) -> SharedMemory {
        let DeviceQueue { staging, span_bytes, .. } = &self.queues[drive];
        let begin = usize::from(slot) * span_bytes;
        staging.part(begin..begin + span_bytes)
    }

    fn copy(&self, drive: usize, slot: u16, to: &mut [u8]) {
        let DeviceQueue { staging, span_bytes, .. } = &self.queues[drive];
        staging.read_bytes(usize::from(slot) * span_bytes, to);
    }

    fn exchange(&mut self) -> Result<()> {
        let entries = self.ring.submission();
        let is_due = !entries.is_empty() || entries.taskrun() || self.mode.is_polled;
        drop(entries);
        match is_due && self.in_flight > 0 {
            true => enter(&mut self.ring, |ring| ring.submit()),
            false => Ok(()),
        }
    }

    fn poll(&mut self) -> Result<Option<Completed>> {
        let Some(entry) = self.ring.completion().next() else { return Ok(None) };
        let (drive, slot) = ((entry.user_data() >> 16) as usize, entry.user_data() as u16);
        self.queues[drive].free.push(slot);
        self.in_flight -= 1;
        Ok(Some(Completed { drive, slot, result: result_of(entry.result()) }))
    }

    /// Waits for an interrupt, which a ring that polls does not get.
    fn rest(&mut self, most: Duration) -> Result<()> {
        if self.mode.is_polled || self.in_flight == 0 {
            std::thread::yield_now();
            return Ok(());
        }
        let most = types::Timespec::from(most);
        enter(&mut self.ring, |ring| {
            let within = types::SubmitArgs::new().timespec(&most);
            match ring.submit_with_args(1, &within) {
                Err(e) if e.raw_os_error() == Some(libc::ETIME) => Ok(0),
                entered => entered,
            }
        })
    }
}

/// What a command's completion says: the error of the system where it is negative, the drive's status where it
/// is positive (`nvme_uring_task_cb` in drivers/nvme/host/ioctl.c).
fn result_of(code: i32) -> io::Result<()> {
    match u16::try_from(code) {
        Ok(0) => Ok(()),
        Ok(status) => Err(io::Error::other(Status(status))),
        Err(_) => Err(io::Error::from_raw_os_error(-code)),
    }
}

/// What is told where the kernel has a ring and no passthrough.
const TOO_OLD: &str = "NVMe passthrough needs Linux 5.19 or newer; `--io uring` reads files";

/// A ring for `entries` commands in flight. It may be used by one thread after another.
fn build(
    entries: usize,
    is_polled: bool,
) -> io::Result<IoUring<squeue::Entry128, cqueue::Entry32>> {
    let mut builder = IoUring::builder();
    // A completion waits for the next system call, and interrupts nobody for it.
    builder.setup_coop_taskrun().setup_taskrun_flag();
    if is_polled {
        builder.setup_iopoll();
    }
    builder.build(entries as u32)
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ring({:?}, {} in flight)", self.mode, self.in_flight)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.in_flight > 0 {
            // The kernel may still write into these: they are never freed.
            self.queues.drain(..).for_each(|queue| mem::forget(queue.staging));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn completions_say_what_the_system_or_the_drive_says() {
        assert!(result_of(0).is_ok());
        let of_system = result_of(-libc::EINTR).unwrap_err();
        assert_eq!(of_system.raw_os_error(), Some(libc::EINTR));
        let of_drive = result_of(0x4281).unwrap_err().to_string();
        assert_eq!(of_drive, "status 0x281, unrecovered read error");
    }

    #[test]
    fn kernels_that_poll_by_what_has_ended_are_not_asked_to() {
        for release in ["6.6.0", "6.12.95+deb12-amd64", "10.0-rc1", "6.6"] {
            assert!(may_poll(release), "{release}");
        }
        for release in ["6.1.0-56-amd64", "6.5.13", "5.19.0", "", "6", "unknown"] {
            assert!(!may_poll(release), "{release}");
        }
    }

    #[test]
    fn a_wait_for_interrupts_ends_in_its_time() {
        let none = Arc::new(Vec::new());
        let plain = Mode { is_polled: false, is_registered: false };
        // A ring of no devices has room for no entry.
        assert!(Ring::new(&none, plain).is_err());
        let Ok(ring) = build(2, false) else {
            println!("skipped: the system gives no io_uring of large entries");
            return;
        };
        // A command in flight that never ends.
        let mut ring = Ring { ring, mode: plain, queues: Vec::new(), in_flight: 1, _devices: none };
        let since = Instant::now();
        ring.rest(Duration::from_millis(30)).unwrap();
        assert!(ring.poll().unwrap().is_none());
        assert!((30..1000).contains(&since.elapsed().as_millis()));
    }
}
