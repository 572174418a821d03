//! The two sides of queue pairs on threads of their own, in few steps: for Miri, which runs them in many
//! interleavings, lets loads see old values where the orderings of accesses allow that, and finds races
//! (`make miri`). Elsewhere it is a test like any other.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tiergraph_nvme::controller::Mapped;
use tiergraph_nvme::queue::Doorbells;
use tiergraph_nvme::registers::Capabilities;
use tiergraph_nvme::{
    Command, Completion, Controller, MemoryStorage, QueuePair, SharedMemory, SoftwareController,
    SoftwareOptions, Timing,
};

/// Bytes that a command of the small drive moves.
const BYTES: usize = 8;
/// Commands of a test: several rounds of a queue.
const COMMANDS: u32 = if cfg!(miri) { 11 } else { 10_000 };
/// Miri's clock goes on slowly.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a small drive and its asker share.
struct Small {
    size: u16,
    registers: SharedMemory,
    submissions: SharedMemory,
    completions: SharedMemory,
    /// [`BYTES`] for each slot.
    data: SharedMemory,
    capabilities: Capabilities,
    is_over: AtomicBool,
}

impl Small {
    fn new(size: u16) -> Self {
        let capabilities = Capabilities {
            queue_entries: 64,
            timeout_ms: 500,
            doorbell_stride: 4,
            least_page_bytes: 4096,
        };
        let [registers, submissions, completions, data] =
            [8192, 4096, 4096, 4096].map(|bytes| SharedMemory::zeroed(bytes).unwrap());
        let is_over = AtomicBool::new(false);
        Self { size, registers, submissions, completions, data, capabilities, is_over }
    }

    fn queue(&self) -> QueuePair {
        let doorbells = Doorbells::new(&self.registers, &self.capabilities, 1);
        let (submissions, completions) = (self.submissions.clone(), self.completions.clone());
        QueuePair::new(1, self.size, submissions, completions, doorbells)
    }

    /// The bytes that a command wants.
    fn bytes_of(wanted: u32) -> [u8; BYTES] {
        u64::from(wanted).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes()
    }

    /// The drive: as the specification has it, and no more ordered. It writes a command's bytes to the slot
    /// that the command names, and completes commands from the last that came to the first.
    fn serve(&self) {
        let (mut head, mut completed) = (0, 0_u64);
        while !self.is_over.load(Ordering::Relaxed) {
            let tail = self.registers.load_acquire(self.capabilities.tail_doorbell(1)) as u16;
            let mut taken = Vec::new();
            while head != tail {
                let mut bytes = [0; size_of::<Command>()];
                self.submissions.read_bytes(usize::from(head) * bytes.len(), &mut bytes);
                taken.push(bytemuck::pod_read_unaligned::<Command>(&bytes));
                head = (head + 1) % self.size;
            }
            for command in taken.into_iter().rev() {
                let [slot, wanted, ..] = command.cdw10;
                self.data.write_bytes(slot as usize * BYTES, &Self::bytes_of(wanted));
                self.complete(&mut completed, command.cid, head);
            }
            thread::yield_now();
        }
    }

    fn complete(&self, completed: &mut u64, cid: u16, sq_head: u16) {
        let size = u64::from(self.size);
        let (entry, round) = ((*completed % size) as u32, *completed / size);
        let is_free = || {
            let freed = self.registers.load_acquire(self.capabilities.head_doorbell(1));
            (entry + 1) % u32::from(self.size) != freed
        };
        while !is_free() {
            thread::yield_now();
        }
        let phase_and_status = u16::from(round.is_multiple_of(2));
        let completion =
            Completion { cid, sq_head, sq_id: 1, phase_and_status, ..Completion::default() };
        let words: [u32; 4] = bytemuck::cast(completion);
        let at = entry as usize * size_of::<Completion>();
        (0..3).for_each(|word| self.completions.store(at + 4 * word, words[word]));
        self.completions.store_release(at + 12, words[3]);
        *completed += 1;
    }
}

/// Asks for [`COMMANDS`] by a queue of `size` entries, and compares what each brought.
fn ask(small: &Small) {
    let mut queue = small.queue();
    let (mut asked, mut next, mut done) = (vec![0; queue.capacity()], 0, 0);
    while done < COMMANDS {
        while next < COMMANDS
            && let Some(slot) = queue.next_slot()
        {
            let cdw10 = [slot.into(), next, 0, 0, 0, 0];
            queue.push(Command { cdw10, ..bytemuck::Zeroable::zeroed() }).unwrap();
            asked[usize::from(slot)] = next;
            next += 1;
        }
        queue.ring();
        let slot = usize::from(queue.wait(PATIENCE).unwrap().slot);
        let mut bytes = [0; BYTES];
        small.data.read_bytes(slot * BYTES, &mut bytes);
        assert_eq!(bytes, Small::bytes_of(asked[slot]), "command {}", asked[slot]);
        // What is not written anew is another command's.
        small.data.write_bytes(slot * BYTES, &[0xee; BYTES]);
        done += 1;
    }
}

#[test]
fn a_drive_on_another_thread_sees_whole_commands_and_its_bytes_are_seen() {
    for size in [2, 3, 4] {
        let small = Small::new(size);
        thread::scope(|scope| {
            scope.spawn(|| small.serve());
            ask(&small);
            small.is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_software_controller_brings_what_was_asked_for() {
    let content: Vec<u8> = (0..8 * 512).map(|at: u32| (at % 251 + at / 512) as u8).collect();
    let storage = MemoryStorage::new(&content).unwrap();
    let options = SoftwareOptions {
        block_bytes: 512,
        queue_pairs: 1,
        queue_entries: 4,
        ..SoftwareOptions::default()
    };
    let drive = SoftwareController::start(storage, options).unwrap();
    let timing = Timing { command: PATIENCE, start: PATIENCE };
    let mut controller = Controller::start(drive.registers(), drive.dma(), timing).unwrap();
    let mut queue = controller.queue_pair(3).unwrap();
    let data = Mapped::zeroed(&drive.dma(), 4096).unwrap();
    let (mut asked, mut next, mut done) = (vec![0; queue.capacity()], 0, 0);
    while done < COMMANDS {
        while next < COMMANDS
            && let Some(slot) = queue.next_slot()
        {
            let bus = data.bus() + 512 * u64::from(slot);
            let offset = 512 * u64::from(next * 3 % 8);
            let command = controller.namespace().read(bus..bus + 512, offset, None).unwrap();
            queue.push(command).unwrap();
            asked[usize::from(slot)] = offset as usize;
            next += 1;
        }
        queue.ring();
        let ended = queue.wait(PATIENCE).unwrap();
        assert!(ended.status.is_success(), "{}", ended.status);
        let (slot, mut bytes) = (usize::from(ended.slot), [0; 512]);
        data.memory().read_bytes(512 * slot, &mut bytes);
        assert_eq!(bytes, content[asked[slot]..][..512], "slot {slot}");
        data.memory().write_bytes(512 * slot, &[0xee; 512]);
        done += 1;
    }
}
