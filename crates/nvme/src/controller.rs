//! A controller, from reset to I/O queues (Base 3.5.1), polled throughout.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::command::{COMMAND_BYTES, Command, Identify, io};
use crate::completion::COMPLETION_BYTES;
use crate::identify::{ControllerInfo, IDENTIFY_BYTES, NamespaceInfo};
use crate::prp::{self, List};
use crate::queue::{Doorbells, Ended, QueuePair, failure};
use crate::registers::{
    ACQ, AQA, ASQ, CAP, CC, CC_ENABLE, CC_SHUTDOWN, CC_SIZES, CSTS, CSTS_FATAL, CSTS_READY,
    CSTS_SHUT_DOWN, CSTS_SHUTDOWN_BITS, Capabilities,
};
use crate::{Dma, SharedMemory};

/// Entries of the admin queues.
const ADMIN_ENTRIES: u16 = 32;

/// How long a controller may take.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// For commands: the longest that a controller with some in flight may complete none of them.
    pub command: Duration,
    /// To start and to stop, at least; a controller that says that it takes longer gets that.
    pub start: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { command: Duration::from_secs(10), start: Duration::from_secs(2) }
    }
}

/// Memory that the controller reaches, for as long as this lives.
#[derive(Debug)]
pub struct Mapped {
    memory: SharedMemory,
    bus: u64,
    dma: Arc<dyn Dma>,
}

impl Mapped {
    /// Maps `bytes` zero bytes, rounded up to pages.
    ///
    /// # Errors
    /// The system has no such memory, or does not map it.
    pub fn zeroed(dma: &Arc<dyn Dma>, bytes: usize) -> Result<Self> {
        Self::new(dma, SharedMemory::zeroed(bytes.next_multiple_of(PAGE_BYTES))?)
    }

    /// Maps `memory`.
    ///
    /// # Errors
    /// As [`Dma::map`].
    pub fn new(dma: &Arc<dyn Dma>, memory: SharedMemory) -> Result<Self> {
        Ok(Self { bus: dma.map(&memory)?, memory, dma: Arc::clone(dma) })
    }

    /// The memory.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// The bus address of its first byte.
    pub fn bus(&self) -> u64 {
        self.bus
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.dma.unmap(self.bus);
    }
}

/// A buffer's mappings, which are attached to it, and end with it.
struct OfBuffer(Vec<Mapped>);

/// The bus address of a buffer's first byte on `dma`, where it is mapped at its first use and stays so until
/// it is freed or [detached](AlignedBuf::detach).
///
/// # Errors
/// As [`Dma::map`].
///
/// # Safety
/// While a command is in flight that names these addresses, nobody refers to the buffer's bytes, frees it or
/// detaches what is attached to it.
pub unsafe fn map_buffer(buffer: &mut AlignedBuf, dma: &Arc<dyn Dma>) -> Result<u64> {
    let of_buffer = buffer.attached::<OfBuffer>().map_or(&[][..], |mapped| &mapped.0);
    if let Some(mapped) = of_buffer.iter().find(|mapped| Arc::ptr_eq(&mapped.dma, dma)) {
        return Ok(mapped.bus);
    }
    let (len, start) = (buffer.len(), buffer.start());
    // SAFETY: the mapping is attached to the buffer, and ends before its bytes are freed. What accesses them
    // meanwhile are commands, of which the caller knows.
    let memory = unsafe { SharedMemory::from_owner(start, len, Arc::new(())) };
    let mapped = Mapped::new(dma, memory)?;
    let bus = mapped.bus;
    let mut all = buffer.take_attached::<OfBuffer>().map_or(Vec::new(), |mapped| mapped.0);
    all.push(mapped);
    buffer.attach(OfBuffer(all));
    Ok(bus)
}

/// A queue pair whose rings somebody else than a [`QueuePair`] uses: where its doorbells are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// The number of the queue pair at its controller.
    pub id: u16,
    /// The byte of the controller's registers at which the submission queue's doorbell is.
    pub tail_doorbell: usize,
    /// The byte of the controller's registers at which the completion queue's doorbell is.
    pub head_doorbell: usize,
}

/// A controller that is started, and the one namespace of it that is read. Dropping it stops the
/// controller: it writes to no memory of this process any more.
#[derive(Debug)]
pub struct Controller {
    registers: SharedMemory,
    capabilities: Capabilities,
    timing: Timing,
    dma: Arc<dyn Dma>,
    admin: QueuePair,
    info: ControllerInfo,
    namespace: Namespace,
    /// How many I/O queue pairs it gives.
    pairs: u16,
    /// The memory of each queue pair by its number, the admin queues' first, which the controller accesses
    /// until the pair is deleted or it has stopped.
    queues: Vec<Option<[Mapped; 2]>>,
}

impl Controller {
    /// Resets the controller behind `registers`, starts it and describes its first active namespace.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it does not start or stop in its time, fails, has no active namespace, or
    /// needs what is not here: larger pages, blocks with metadata.
    pub fn start(registers: SharedMemory, dma: Arc<dyn Dma>, timing: Timing) -> Result<Self> {
        let capabilities = Capabilities::from_bits(registers.load64(CAP));
        if capabilities.least_page_bytes > PAGE_BYTES as u64 {
            return Err(Error::new(ErrorKind::Io, "start an NVMe controller")
                .expected("one with pages of `4.0 KiB`")
                .got(format!("pages of `{}` bytes", capabilities.least_page_bytes)));
        }
        // Base 3.5.1, step 1: a controller that was left running is stopped first.
        let bits = registers.load(CC);
        registers.store_release(CC, bits & !CC_ENABLE);
        let start = timing.start.max(Duration::from_millis(capabilities.timeout_ms));
        await_status(&registers, start, "stop", |status| status & CSTS_READY == 0)?;
        // Step 2: the admin queues.
        let entries = usize::from(ADMIN_ENTRIES);
        let submissions = Mapped::zeroed(&dma, entries * COMMAND_BYTES)?;
        let completions = Mapped::zeroed(&dma, entries * COMPLETION_BYTES)?;
        let size = u32::from(ADMIN_ENTRIES - 1);
        registers.store(AQA, size << 16 | size);
        registers.store64(ASQ, submissions.bus());
        registers.store64(ACQ, completions.bus());
        let doorbells = Doorbells::new(&registers, &capabilities, 0);
        let (sq, cq) = (submissions.memory().clone(), completions.memory().clone());
        let admin = QueuePair::new(0, ADMIN_ENTRIES, sq, cq, doorbells);
        // Steps 4 and 5: enable, and wait until it is ready.
        registers.store_release(CC, CC_SIZES | CC_ENABLE);
        let mut controller = Self {
            registers,
            capabilities,
            timing: Timing { start, ..timing },
            dma,
            admin,
            info: ControllerInfo {
                serial: String::new(),
                model: String::new(),
                most_pages: None,
                namespaces: 0,
            },
            namespace: Namespace { id: 0, block_bytes: 512, blocks: 0, most_bytes: 0 },
            pairs: 0,
            queues: vec![Some([submissions, completions])],
        };
        await_status(&controller.registers, start, "start", |status| status & CSTS_READY != 0)?;
        controller.describe()?;
        Ok(controller)
    }

    /// Base 3.5.1, steps 6 to 9: what the controller and its first active namespace are, and queues.
    fn describe(&mut self) -> Result<()> {
        let page = Mapped::zeroed(&self.dma, IDENTIFY_BYTES)?;
        let mut bytes = [0; IDENTIFY_BYTES];
        let mut identify = |this: &mut Self, what, nsid| {
            this.admin(Command::identify(what, nsid, page.bus()), "identify the controller")?;
            page.memory().read_bytes(0, &mut bytes);
            Ok::<_, Error>(bytes)
        };
        self.info = ControllerInfo::from_bytes(&identify(self, Identify::Controller, 0)?);
        let active = identify(self, Identify::ActiveNamespaces, 0)?;
        let id = u32::from_le_bytes([active[0], active[1], active[2], active[3]]);
        let page =
            if id == 0 { [0; IDENTIFY_BYTES] } else { identify(self, Identify::Namespace, id)? };
        let pages = self.info.most_pages.unwrap_or(u64::MAX);
        let largest = pages.saturating_mul(self.capabilities.least_page_bytes);
        let most_bytes = largest.min(prp::LIST_ENTRIES * PAGE_BYTES as u64);
        self.namespace = Namespace::described(id, &page, most_bytes, &self.info.serial)?;
        let given = self.admin(Command::set_queues(u16::MAX - 1), "ask for queues of")?.result;
        self.pairs = (given as u16).min((given >> 16) as u16).saturating_add(1);
        Ok(())
    }

    /// What the controller says of itself.
    pub fn info(&self) -> &ControllerInfo {
        &self.info
    }

    /// The namespace that is read.
    pub fn namespace(&self) -> Namespace {
        self.namespace
    }

    /// How many queue pairs the controller gives.
    pub fn most_queue_pairs(&self) -> u16 {
        self.pairs
    }

    /// Creates a queue pair for `depth` commands in flight, or as many as a queue of the controller holds
    /// (Base 3.5.1, steps 10 and 11). It is deleted with the controller.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where the controller has no further queue.
    pub fn queue_pair(&mut self, depth: usize) -> Result<QueuePair> {
        let size = (depth + 1).clamp(2, self.most_entries().into()) as u16;
        let zeroed = |entry: usize| {
            SharedMemory::zeroed((usize::from(size) * entry).next_multiple_of(PAGE_BYTES))
        };
        let (sq, cq) = (zeroed(COMMAND_BYTES)?, zeroed(COMPLETION_BYTES)?);
        let id = self.create_queues(size, sq.clone(), cq.clone())?;
        let doorbells = Doorbells::new(&self.registers, &self.capabilities, id);
        Ok(QueuePair::new(id, size, sq, cq, doorbells))
    }

    /// Creates a queue pair of `entries` entries (2 to [`most_entries`](Self::most_entries)) for whoever
    /// asks by it without this process's help, such as a GPU. `submissions` and `completions` are zero and
    /// begin at pages; the controller accesses them until the pair is [deleted](Self::delete) or it has
    /// stopped.
    ///
    /// # Errors
    /// As [`queue_pair`](Self::queue_pair).
    ///
    /// # Panics
    /// If they have no room for so many entries.
    pub fn rings(
        &mut self,
        entries: u16,
        submissions: SharedMemory,
        completions: SharedMemory,
    ) -> Result<Rings> {
        assert!((2..=self.most_entries()).contains(&entries));
        assert!(submissions.len() >= usize::from(entries) * COMMAND_BYTES);
        assert!(completions.len() >= usize::from(entries) * COMPLETION_BYTES);
        let id = self.create_queues(entries, submissions, completions)?;
        let (tail, head) =
            (self.capabilities.tail_doorbell(id), self.capabilities.head_doorbell(id));
        Ok(Rings { id, tail_doorbell: tail, head_doorbell: head })
    }

    /// The most entries of a queue: what the controller has, and identifiers of commands have room for.
    pub fn most_entries(&self) -> u16 {
        self.capabilities.queue_entries.min(4096) as u16
    }

    /// Creates a queue pair of `size` entries in this memory, and gives its number.
    fn create_queues(
        &mut self,
        size: u16,
        submissions: SharedMemory,
        completions: SharedMemory,
    ) -> Result<u16> {
        let unused = self.queues.iter().position(Option::is_none);
        let id = unused.unwrap_or(self.queues.len()) as u16;
        if id > self.pairs {
            return Err(Error::new(ErrorKind::Io, "create a queue pair of the NVMe drive")
                .object(&self.info.serial)
                .expected(format!("at most `{}`", self.pairs))
                .got("one more")
                .hint("use fewer `--threads`"));
        }
        let submissions = Mapped::new(&self.dma, submissions)?;
        let completions = Mapped::new(&self.dma, completions)?;
        let (sq_bus, cq_bus) = (submissions.bus(), completions.bus());
        // Kept before the controller knows of it: it may write there from then on.
        let kept = Some([submissions, completions]);
        match unused {
            Some(unused) => self.queues[unused] = kept,
            None => self.queues.push(kept),
        }
        let op = "create a queue of";
        self.admin(Command::create_completion_queue(id, size, cq_bus), op)?;
        self.admin(Command::create_submission_queue(id, size, sq_bus), op)?;
        Ok(id)
    }

    /// Deletes the queue pair number `id` that [`rings`](Self::rings) gave (Base 5.6, 5.7): commands in it are
    /// not completed, and the controller does not access its memory any more.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a number that none has; a controller that does not answer: the memory of the
    /// pair stays mapped then, until the controller has stopped.
    pub fn delete(&mut self, id: u16) -> Result<()> {
        if id == 0 || self.queues.get(usize::from(id)).is_none_or(Option::is_none) {
            return Err(Error::new(ErrorKind::Input, "delete a queue pair of the NVMe drive")
                .object(&self.info.serial)
                .expected("one that was created")
                .got(format!("`{id}`")));
        }
        let op = "delete a queue of";
        self.admin(Command::delete_submission_queue(id), op)?;
        self.admin(Command::delete_completion_queue(id), op)?;
        self.queues[usize::from(id)] = None;
        Ok(())
    }

    /// The controller's registers, doorbells among them.
    pub fn registers(&self) -> &SharedMemory {
        &self.registers
    }

    /// The bus by which the controller reaches memory.
    pub fn dma(&self) -> &Arc<dyn Dma> {
        &self.dma
    }

    /// Does an admin command, and waits for it.
    fn admin(&mut self, command: Command, op: &str) -> Result<Ended> {
        let pushed = self.admin.push(command);
        debug_assert!(pushed.is_some(), "one admin command at a time");
        self.admin.ring();
        let failed = |e: Error| e.or_hint("the drive may have to be reset by a restart");
        let ended = self.admin.wait(self.timing.command).map_err(failed)?;
        match ended.status {
            status if status.is_success() => Ok(ended),
            status => Err(failure(op, status).object(format!("NVMe drive {}", self.info.serial))),
        }
    }

    /// Whether the controller has said that it failed, or is not there any more.
    pub fn has_failed(&self) -> bool {
        self.registers.load_acquire(CSTS) & CSTS_FATAL != 0
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // Base 3.6.1: a normal shutdown; then disabled, so that no memory is accessed any more.
        let bits = self.registers.load(CC);
        let has_shut_down = |status| status & CSTS_SHUTDOWN_BITS == CSTS_SHUT_DOWN;
        self.registers.store_release(CC, bits | CC_SHUTDOWN);
        let shut_down =
            await_status(&self.registers, self.timing.start, "shut down", has_shut_down);
        self.registers.store_release(CC, bits & !(CC_SHUTDOWN | CC_ENABLE));
        let has_stopped = |status| status & CSTS_READY == 0;
        let stopped = await_status(&self.registers, self.timing.start, "stop", has_stopped);
        if shut_down.is_err() && stopped.is_err() {
            // It may still write to its queues: they are never freed.
            self.queues.drain(..).for_each(std::mem::forget);
        }
    }
}

/// Waits until the register CSTS is as wanted.
fn await_status(
    registers: &SharedMemory,
    most: Duration,
    what: &str,
    is_wanted: impl Fn(u32) -> bool,
) -> Result<()> {
    let since = Instant::now();
    loop {
        let status = registers.load_acquire(CSTS);
        // A device that is gone reads as ones.
        let is_failed = status == u32::MAX || status & CSTS_FATAL != 0 && what == "start";
        if !is_failed && is_wanted(status) {
            return Ok(());
        }
        if is_failed || since.elapsed() > most {
            return Err(Error::new(ErrorKind::Io, format!("{what} an NVMe controller"))
                .expected(format!("it to {what} within `{} ms`", most.as_millis()))
                .got(format!("status register `{status:#x}`")));
        }
        std::thread::yield_now();
    }
}

/// A namespace: blocks that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespace {
    /// Its number at the controller.
    pub id: u32,
    /// Bytes of a logical block.
    pub block_bytes: u64,
    /// The number of logical blocks.
    pub blocks: u64,
    /// The most bytes that one command moves.
    pub most_bytes: u64,
}

impl Namespace {
    /// Namespace `id` of the drive `name`, as a page of Identify describes it; a command of the drive moves at
    /// most `most_bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it is not active (number 0 is none), or has blocks that are not read here: larger
    /// than a page, or with metadata.
    pub fn described(
        id: u32,
        page: &[u8; IDENTIFY_BYTES],
        most_bytes: u64,
        name: &str,
    ) -> Result<Self> {
        let refused = |got: String| {
            Error::new(ErrorKind::Io, "use the NVMe drive")
                .object(name)
                .expected("an active namespace of blocks without metadata")
                .got(got)
        };
        if id == 0 {
            return Err(refused("no active namespace".into()));
        }
        let NamespaceInfo { blocks, block_bytes, metadata_bytes } = NamespaceInfo::from_bytes(page)
            .ok_or_else(|| refused(format!("namespace {id} of no size or format")))?;
        if metadata_bytes > 0 || block_bytes > PAGE_BYTES as u64 {
            return Err(refused(format!("blocks of {block_bytes} and {metadata_bytes} bytes")));
        }
        Ok(Self { id, block_bytes, blocks, most_bytes })
    }

    /// Bytes of the namespace.
    pub fn bytes(&self) -> u64 {
        self.blocks * self.block_bytes
    }

    /// The command that reads the bytes from `offset` on into the bus addresses `to`; `list` is for their
    /// pages, if they are more than two.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for bytes that are not whole blocks of the namespace, or more than one command
    /// moves.
    pub fn read(
        &self,
        to: std::ops::Range<u64>,
        offset: u64,
        list: Option<&List>,
    ) -> Result<Command> {
        self.move_bytes(io::READ, to, offset, list)
    }

    /// The command that writes what is at the bus addresses `from` from byte `offset` on.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write(
        &self,
        from: std::ops::Range<u64>,
        offset: u64,
        list: Option<&List>,
    ) -> Result<Command> {
        self.move_bytes(io::WRITE, from, offset, list)
    }

    /// The command that makes everything durable that was written.
    pub fn flush(&self) -> Command {
        Command { opcode: io::FLUSH, nsid: self.id, ..Command::default() }
    }

    fn move_bytes(
        &self,
        opcode: u8,
        bus: std::ops::Range<u64>,
        offset: u64,
        list: Option<&List>,
    ) -> Result<Command> {
        let len = bus.end - bus.start;
        let command = self.move_blocks(opcode, offset, len)?;
        let prps = prp::describe(bus.start, len, list).ok_or_else(|| self.refused(offset, len))?;
        Ok(Command { prp1: prps.prp1, prp2: prps.prp2, ..command })
    }

    /// The command that moves `len` bytes from byte `offset` on by `opcode`, and says nothing of the memory to
    /// which or from which.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn move_blocks(&self, opcode: u8, offset: u64, len: u64) -> Result<Command> {
        let is_whole =
            offset.is_multiple_of(self.block_bytes) && len.is_multiple_of(self.block_bytes);
        let end = offset.checked_add(len).filter(|&end| end <= self.bytes());
        if end.is_none() || !is_whole || len == 0 || len > self.most_bytes {
            return Err(self.refused(offset, len));
        }
        let (first, blocks) = (offset / self.block_bytes, (len / self.block_bytes) as u32);
        Ok(Command::move_blocks(opcode, self.id, first, blocks))
    }

    #[cold]
    fn refused(&self, offset: u64, len: u64) -> Error {
        Error::new(ErrorKind::Input, "move blocks of an NVMe namespace")
            .expected(format!(
                "at most `{}` of its `{}` bytes, in blocks of `{}`",
                self.most_bytes,
                self.bytes(),
                self.block_bytes
            ))
            .got(format!("`{len}` bytes at `{offset}`"))
    }
}
