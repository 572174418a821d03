//! A controller made of threads: it polls doorbells, does commands and writes completions, as a drive
//! does, in the same memory and by the same registers.
//!
//! Thread 0 also has the registers and the admin queue. I/O queue pairs are shared out over the threads.
//! A thread that finds nothing to do for a while sleeps a little between looks.

mod admin;
mod faults;
mod file_reads;
mod served;
mod storage;

use std::hint;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tiergraph_core::{Error, ErrorKind, Result, threads};

pub use self::faults::Faults;
pub use self::file_reads::FileRead;
pub use self::storage::{FileStorage, MemoryStorage, Storage, StripedStorage};

use self::admin::Admin;
use self::file_reads::FileReads;
use self::served::{Finished, Ring, Served};
use crate::dma::PAGE_BYTES;
use crate::registers::{
    CAP, CC, CC_ENABLE, CC_SHUTDOWN, CSTS, CSTS_FATAL, CSTS_READY, CSTS_SHUT_DOWN, Capabilities,
    DOORBELLS, VS,
};
use crate::{AddressMap, Dma, ModelledDrive, SharedMemory};

/// The number of the one namespace.
const NAMESPACE: u32 = 1;
/// NVM Express 2.0.
const VERSION: u32 = 0x0002_0000;
/// Looks at all queues in vain after which a thread yields between looks.
const SPINS: u32 = 2_000;
/// Looks in vain after which it sleeps between them.
const YIELDS: u32 = 4_000;
const SLEEP: Duration = Duration::from_micros(50);

/// What a software controller is.
#[derive(Debug, Clone)]
pub struct SoftwareOptions {
    /// The serial number.
    pub serial: String,
    /// The model.
    pub model: String,
    /// Bytes of a logical block: 512 or 4096.
    pub block_bytes: u64,
    /// The most bytes of a command: a power of two from 8192 on (MDTS has no way to say one page).
    pub most_bytes: u64,
    /// The number of I/O queue pairs.
    pub queue_pairs: u16,
    /// The most entries of a queue.
    pub queue_entries: u32,
    /// Bytes from a doorbell to the next: a power of two from 4 on.
    pub doorbell_stride: usize,
    /// The threads that serve queues.
    pub threads: usize,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// The drive whose speed is imitated; `None`: as fast as threads are. It only ever slows down.
    pub drive: Option<ModelledDrive>,
}

impl Default for SoftwareOptions {
    fn default() -> Self {
        Self {
            serial: "TG0001".into(),
            model: "tiergraph software controller".into(),
            block_bytes: 4096,
            most_bytes: 1 << 20,
            queue_pairs: 128,
            queue_entries: 4096,
            // A cache line each: the two sides write them.
            doorbell_stride: 64,
            threads: 1,
            faults: Faults::default(),
            drive: None,
        }
    }
}

/// The place of an I/O queue pair, on cache lines of its own: neighbours are served by other threads, and
/// processors fetch lines by twos.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(Mutex<Option<Served>>);

impl Lane {
    fn lock(&self) -> MutexGuard<'_, Option<Served>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the threads of a controller share.
#[derive(Debug)]
struct Drive {
    options: SoftwareOptions,
    capabilities: Capabilities,
    registers: SharedMemory,
    map: Arc<AddressMap>,
    storage: Box<dyn Storage>,
    /// I/O queue pairs by number, less one.
    queues: Vec<Lane>,
    /// The number of those up to the last that was ever created: threads look at no others.
    created: AtomicUsize,
    stop: AtomicBool,
}

impl Drive {
    /// The memory of a ring of at least two entries at a bus address; `None` if there is no such memory.
    fn ring(&self, bus: u64, entries: u16, entry_bytes: usize) -> Option<Ring> {
        let bytes = usize::from(entries) * entry_bytes;
        let mut translation = crate::dma::Translation::new(Arc::clone(&self.map));
        let (memory, at) = translation.find(bus, bytes)?;
        let is_possible = entries >= 2 && at.is_multiple_of(8);
        is_possible.then(|| Ring { memory: memory.part(at..at + bytes), entries })
    }

    /// Says that the controller failed: it does nothing until it is reset.
    fn fail(&self) {
        self.registers.store_release(CSTS, self.registers.load(CSTS) | CSTS_FATAL);
    }

    fn has_failed(&self) -> bool {
        self.registers.load(CSTS) & CSTS_FATAL != 0
    }

    fn clear_doorbells(&self, id: u16) {
        self.registers.store(self.capabilities.tail_doorbell(id), 0);
        self.registers.store(self.capabilities.head_doorbell(id), 0);
    }
}

/// A controller whose namespace is a [`Storage`], served by threads. Dropping it ends them: commands in
/// flight are not completed.
#[derive(Debug)]
pub struct SoftwareController {
    drive: Arc<Drive>,
    threads: Vec<JoinHandle<()>>,
}

impl SoftwareController {
    /// Starts the threads of a controller that waits to be enabled.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for options that no drive has, or a storage that is not whole blocks; the
    /// system gives no more threads or memory.
    pub fn start(storage: impl Storage + 'static, options: SoftwareOptions) -> Result<Self> {
        check(&storage, &options)?;
        let capabilities = Capabilities {
            queue_entries: options.queue_entries,
            timeout_ms: 500,
            doorbell_stride: options.doorbell_stride,
            least_page_bytes: PAGE_BYTES,
        };
        let bytes =
            DOORBELLS + 2 * options.doorbell_stride * (usize::from(options.queue_pairs) + 1);
        let registers = SharedMemory::zeroed(bytes)?;
        registers.store64(CAP, capabilities.to_bits());
        registers.store(VS, VERSION);
        let drive = Arc::new(Drive {
            capabilities,
            registers,
            map: Arc::default(),
            storage: Box::new(storage),
            queues: (0..options.queue_pairs).map(|_| Lane::default()).collect(),
            created: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            options,
        });
        let mut controller = Self { drive, threads: Vec::new() };
        for number in 0..controller.drive.options.threads {
            let drive = Arc::clone(&controller.drive);
            let run = move || serve(&drive, number);
            controller.threads.push(threads::start(&format!("nvme-{number}"), run)?);
        }
        Ok(controller)
    }

    /// The controller's registers: what BAR 0 of a drive maps.
    pub fn registers(&self) -> SharedMemory {
        self.drive.registers.clone()
    }

    /// The bus by which the controller reaches memory.
    pub fn dma(&self) -> Arc<dyn Dma> {
        Arc::clone(&self.drive.map) as _
    }
}

impl Drop for SoftwareController {
    fn drop(&mut self) {
        self.drive.stop.store(true, Ordering::Relaxed);
        // A thread that panicked has nothing left to end.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn check(storage: &impl Storage, options: &SoftwareOptions) -> Result<()> {
    let SoftwareOptions { block_bytes, most_bytes, queue_pairs, queue_entries, .. } = *options;
    let stride = options.doorbell_stride;
    let is_possible = [512, 4096].contains(&block_bytes)
        && most_bytes.is_power_of_two()
        && most_bytes >= 8192
        && (1..=4096).contains(&queue_pairs)
        && (2..=1 << 15).contains(&queue_entries)
        && stride.is_power_of_two()
        && (4..=128).contains(&stride)
        && options.threads > 0;
    let bytes = storage.bytes();
    if is_possible && bytes > 0 && bytes.is_multiple_of(block_bytes) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Input, "start a software controller")
        .expected("whole blocks of 512 or 4096 bytes, commands of a power of two of bytes, queues, threads")
        .got(format!("`{bytes}` bytes and {options:?}")))
}

/// A thread's loop.
fn serve(drive: &Drive, number: usize) {
    let mut admin: Option<Admin> = None;
    let mut idle = 0_u32;
    let mut reads = FileReads::default();
    while !drive.stop.load(Ordering::Relaxed) {
        let mut busy = number == 0 && serve_registers(drive, &mut admin);
        if !drive.has_failed() {
            let created = &drive.queues[..drive.created.load(Ordering::Relaxed)];
            let own = created.iter().skip(number).step_by(drive.options.threads);
            for queue in own {
                let mut queue = queue.lock();
                if let Some(queue) = &mut *queue {
                    busy |= queue.serve(drive, &mut reads, |queue, command, reads| {
                        let status = queue.move_blocks(drive, command, reads);
                        Finished { cid: command.cid, status, result: 0 }
                    });
                }
            }
        }
        idle = if busy { 0 } else { idle.saturating_add(1) };
        match idle {
            0..SPINS => hint::spin_loop(),
            SPINS..YIELDS => thread::yield_now(),
            _ => thread::sleep(SLEEP),
        }
    }
}

/// Does what the registers ask for (Base 3.1.3.5, 3.5, 3.6), and the admin queue's commands.
fn serve_registers(drive: &Drive, admin: &mut Option<Admin>) -> bool {
    let (registers, bits) = (&drive.registers, drive.registers.load_acquire(CC));
    let is_enabled = bits & CC_ENABLE != 0;
    let status = registers.load(CSTS);
    if !is_enabled {
        if status != 0 {
            // A reset: no queue is left, and no memory is accessed any more.
            *admin = None;
            for queue in &drive.queues {
                *queue.lock() = None;
            }
            registers.store_release(CSTS, 0);
        }
        return false;
    }
    if drive.has_failed() {
        return false;
    }
    if status & CSTS_READY == 0 {
        drive.clear_doorbells(0);
        *admin = Admin::new(drive);
        match admin {
            Some(_) => registers.store_release(CSTS, CSTS_READY),
            None => drive.fail(),
        }
        return true;
    }
    if bits & CC_SHUTDOWN != 0 {
        registers.store_release(CSTS, status | CSTS_SHUT_DOWN);
        return false;
    }
    admin.as_mut().is_some_and(|admin| admin.serve(drive))
}
