//! The driver against the software controller: contents, order, wrap, full queues, resets.

#![allow(clippy::unwrap_used, unsafe_code)]

mod common;

use std::collections::VecDeque;

use common::{Buffers, TIMING, read_all, start};
use proptest::prelude::*;
use tiergraph_mem::AlignedBuf;
use tiergraph_nvme::command::{Command, io};
use tiergraph_nvme::controller::{Mapped, map_buffer};
use tiergraph_nvme::queue::{Doorbells, QueuePair};
use tiergraph_nvme::registers::{
    ACQ, AQA, ASQ, CAP, CC, CC_ENABLE, CSTS, CSTS_FATAL, CSTS_READY, Capabilities,
};
use tiergraph_nvme::{
    Completion, Controller, Faults, ModelledDrive, SharedMemory, SoftwareOptions, Status,
};

const DRIVE_BYTES: usize = 4 << 20;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_byte_is_the_asked_ones(
        block_log2 in prop::sample::select(vec![9_u32, 12]),
        most_log2 in 13_u32..=20,
        stride_log2 in 2_u32..=4,
        depth in 1_usize..40,
        shuffled: bool,
        reads in prop::collection::vec((any::<u32>(), any::<u32>()), 1..120),
    ) {
        let options = SoftwareOptions {
            block_bytes: 1 << block_log2,
            most_bytes: 1 << most_log2,
            doorbell_stride: 1 << stride_log2,
            queue_entries: 32,
            faults: Faults { shuffled, seed: depth as u64, ..Faults::default() },
            ..SoftwareOptions::default()
        };
        let (drive, mut controller) = start(DRIVE_BYTES, options);
        let namespace = controller.namespace();
        prop_assert_eq!(namespace.bytes(), DRIVE_BYTES as u64);
        prop_assert_eq!(namespace.block_bytes, 1 << block_log2);
        prop_assert_eq!(namespace.most_bytes, 1 << most_log2);
        let mut queue = controller.queue_pair(depth).unwrap();
        prop_assert_eq!(queue.capacity(), depth.min(31));
        let buffers = Buffers::new(&drive.dma(), queue.capacity(), 1 << most_log2);
        let blocks = DRIVE_BYTES >> block_log2;
        let reads = reads.into_iter().map(|(first, count)| {
            let first = first as usize % blocks;
            let most = (blocks - first).min((1 << most_log2) >> block_log2);
            ((first << block_log2) as u64, (1 + count as usize % most) << block_log2)
        });
        let reads: Vec<_> = reads.collect();
        let count = reads.len() as u64;
        let failed = |status| panic!("{status}");
        prop_assert_eq!(read_all(&controller, &mut queue, &buffers, reads, failed).unwrap(), count);
    }

    /// The queue's state against a plain list of what is in flight, with a controller that is a loop here.
    #[test]
    fn any_order_of_steps_is_a_plain_queues(size in 2_u16..20, steps in prop::collection::vec(0_u8..6, 1..600)) {
        let mut bench = Bench::new(size);
        let mut in_flight: VecDeque<(u16, u64)> = VecDeque::new();
        let mut at_controller: VecDeque<(u16, u64)> = VecDeque::new();
        let mut rung = 0;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                0 | 1 => {
                    let command = Command::move_blocks(io::READ, 1, number as u64, 1);
                    let room = bench.queue.room();
                    match bench.queue.push(command) {
                        Some(slot) => {
                            prop_assert!(in_flight.iter().all(|&(other, _)| other != slot));
                            in_flight.push_back((slot, number as u64));
                        }
                        None => prop_assert_eq!(room, 0),
                    }
                }
                2 => {
                    bench.queue.ring();
                    rung = bench.fetch(&mut at_controller);
                }
                // The controller completes its first or its last command.
                3 | 4 => {
                    let taken = if step == 3 { at_controller.pop_front() } else { at_controller.pop_back() };
                    if let Some((cid, block)) = taken {
                        prop_assert!(in_flight.iter().any(|&(_, asked)| asked == block));
                        bench.complete(cid, rung);
                    }
                }
                _ => while let Some(ended) = bench.queue.poll().unwrap() {
                    let at = in_flight.iter().position(|&(slot, _)| slot == ended.slot);
                    prop_assert!(at.is_some());
                    in_flight.remove(at.unwrap());
                    bench.queue.free_entries();
                },
            }
            let unseen = bench.completed - bench.seen();
            prop_assert_eq!(bench.queue.in_flight(), in_flight.len());
            prop_assert!(unseen as usize <= in_flight.len());
            prop_assert!(bench.queue.in_flight() < usize::from(size));
        }
    }
}

/// A queue pair whose controller is the test.
struct Bench {
    queue: QueuePair,
    submissions: SharedMemory,
    completions: SharedMemory,
    registers: SharedMemory,
    capabilities: Capabilities,
    size: u16,
    head: u16,
    completed: u64,
}

impl Bench {
    fn new(size: u16) -> Self {
        let capabilities = Capabilities {
            queue_entries: 64,
            timeout_ms: 500,
            doorbell_stride: 4,
            least_page_bytes: 4096,
        };
        let [registers, submissions, completions] =
            [8192, 4096, 4096].map(|bytes| SharedMemory::zeroed(bytes).unwrap());
        let doorbells = Doorbells::new(&registers, &capabilities, 1);
        let (sq, cq) = (submissions.clone(), completions.clone());
        let queue = QueuePair::new(1, size, sq, cq, doorbells);
        Self {
            queue,
            submissions,
            completions,
            registers,
            capabilities,
            size,
            head: 0,
            completed: 0,
        }
    }

    /// Takes the commands that the doorbell tells of; how far that is.
    fn fetch(&mut self, commands: &mut VecDeque<(u16, u64)>) -> u16 {
        let tail = self.registers.load_acquire(self.capabilities.tail_doorbell(1)) as u16;
        while self.head != tail {
            let at = usize::from(self.head) * 64;
            let cid = (self.submissions.load(at) >> 16) as u16;
            commands.push_back((cid, u64::from(self.submissions.load(at + 40))));
            self.head = (self.head + 1) % self.size;
        }
        self.head
    }

    fn complete(&mut self, cid: u16, sq_head: u16) {
        self.post(Completion { cid, sq_head, sq_id: 1, ..Completion::default() });
    }

    fn post(&mut self, completion: Completion) {
        let size = u64::from(self.size);
        let at = (self.completed % size) as usize * 16;
        let phase = u16::from((self.completed / size).is_multiple_of(2));
        let completion = Completion { phase_and_status: phase, ..completion };
        let words: [u32; 4] = bytemuck::cast(completion);
        (0..3).for_each(|i| self.completions.store(at + 4 * i, words[i]));
        self.completions.store_release(at + 12, words[3]);
        self.completed += 1;
    }

    /// Completions that the host has given back, at most one round less than were written.
    fn seen(&self) -> u64 {
        let freed = u64::from(self.registers.load(self.capabilities.head_doorbell(1)));
        let (size, completed) = (u64::from(self.size), self.completed);
        let behind = (completed % size + size - freed) % size;
        completed - behind
    }
}

#[test]
fn queues_wrap_and_phases_turn_for_a_million_commands() {
    let options = SoftwareOptions { queue_entries: 64, threads: 2, ..SoftwareOptions::default() };
    let (drive, mut controller) = start(1 << 20, options);
    // Queues of 3, 7 and 64 entries: rounds of all lengths end at other places.
    for depth in [2, 6, 63] {
        let mut queue = controller.queue_pair(depth).unwrap();
        let buffers = Buffers::new(&drive.dma(), queue.capacity(), 4096);
        let mut done = 0_u64;
        let (mut next, count) = (0_u64, 350_000);
        let mut asked = vec![0; queue.capacity()];
        while done < count {
            while next < count
                && let Some(slot) = queue.next_slot()
            {
                asked[usize::from(slot)] = next % 256;
                queue
                    .push(buffers.read(&controller, slot.into(), next % 256 * 4096, 4096))
                    .unwrap();
                next += 1;
            }
            queue.ring();
            while let Some(ended) = queue.poll().unwrap() {
                assert!(ended.status.is_success());
                // All bytes of every sixteenth block; the drive gives them all.
                if done.is_multiple_of(16) {
                    let block = asked[usize::from(ended.slot)] as usize;
                    let found = buffers.take(ended.slot.into(), 4096);
                    assert!(found.into_iter().eq((block * 4096..).take(4096).map(common::byte_at)));
                }
                done += 1;
            }
            queue.free_entries();
        }
        assert_eq!(queue.in_flight(), 0);
    }
}

#[test]
fn what_a_drive_refuses_has_the_drives_status() {
    let options = SoftwareOptions { most_bytes: 8192, ..SoftwareOptions::default() };
    let (drive, mut controller) = start(1 << 20, options);
    let page = Mapped::zeroed(&drive.dma(), 8192).unwrap();
    let mut queue = controller.queue_pair(4).unwrap();
    let read = Command { prp1: page.bus(), ..Command::move_blocks(io::READ, 1, 0, 1) };
    let cases = [
        (Command { opcode: 0x7f, ..read }, Status::INVALID_OPCODE),
        (Command { nsid: 2, ..read }, Status::INVALID_NAMESPACE),
        (Command { flags: 0x40, ..read }, Status::INVALID_FIELD),
        (Command { cdw10: [256, 0, 0, 0, 0, 0], ..read }, Status::LBA_OUT_OF_RANGE),
        (Command { cdw10: [255, 0, 1, 0, 0, 0], ..read }, Status::LBA_OUT_OF_RANGE),
        (Command { cdw10: [u32::MAX, u32::MAX, 0, 0, 0, 0], ..read }, Status::LBA_OUT_OF_RANGE),
        (Command { cdw10: [0, 0, 2, 0, 0, 0], ..read }, Status::INVALID_FIELD),
        (Command { prp1: page.bus() + 2, ..read }, Status::INVALID_PRP_OFFSET),
        (Command { prp1: 0x1000, ..read }, Status::DATA_TRANSFER_ERROR),
        (Command { prp1: page.bus() + 4100, prp2: 0, ..read }, Status::DATA_TRANSFER_ERROR),
        (read, Status::SUCCESS),
    ];
    for (command, expected) in cases {
        queue.push(command).unwrap();
        queue.ring();
        assert_eq!(queue.wait(TIMING.command).unwrap().status, expected, "{command:?}");
    }
    drop(page);
    queue.push(read).unwrap();
    queue.ring();
    let unmapped = queue.wait(TIMING.command).unwrap();
    assert_eq!(unmapped.status, Status::DATA_TRANSFER_ERROR, "memory that is mapped no more");
}

#[test]
fn a_completion_of_no_command_in_flight_is_an_error() {
    // The first command in slot 0 of a queue of four has this identifier.
    let cid = 4;
    let impossible = [
        Completion { cid: 5, sq_id: 1, sq_head: 1, ..Completion::default() },
        Completion { cid: 0, sq_id: 1, sq_head: 1, ..Completion::default() },
        Completion { cid: 8, sq_id: 1, sq_head: 1, ..Completion::default() },
        Completion { cid, sq_id: 2, sq_head: 1, ..Completion::default() },
        Completion { cid, sq_id: 1, sq_head: 2, ..Completion::default() },
        Completion { cid, sq_id: 1, sq_head: 9, ..Completion::default() },
        Completion { cid: 700, sq_id: 1, sq_head: 1, ..Completion::default() },
    ];
    for completion in impossible {
        let mut bench = Bench::new(4);
        assert_eq!(bench.queue.push(Command::default()), Some(0));
        bench.queue.ring();
        bench.post(completion);
        let error = bench.queue.poll().unwrap_err();
        assert!(error.to_string().contains("expected a command in flight"), "{error}");
    }
}

#[test]
fn a_full_completion_queue_stalls_and_goes_on() {
    let options = SoftwareOptions { queue_entries: 8, ..SoftwareOptions::default() };
    let (drive, mut controller) = start(1 << 20, options);
    let mut queue = controller.queue_pair(7).unwrap();
    let buffers = Buffers::new(&drive.dma(), queue.capacity(), 4096);
    let mut asked = [0; 7];
    let mut taken = 0;
    for round in 0..50_u64 {
        while let Some(slot) = queue.next_slot() {
            let offset = (round * 7 + u64::from(slot)) % 256 * 4096;
            asked[usize::from(slot)] = offset as usize;
            queue.push(buffers.read(&controller, slot.into(), offset, 4096)).unwrap();
        }
        queue.ring();
        // Completions are looked at, and their entries given back only every fifth round.
        let since = std::time::Instant::now();
        while queue.room() == 0 && since.elapsed() < TIMING.command {
            while let Some(ended) = queue.poll().unwrap() {
                let found = buffers.take(ended.slot.into(), 4096);
                let from = asked[usize::from(ended.slot)];
                assert!(found.into_iter().eq((from..from + 4096).map(common::byte_at)));
                taken += 1;
            }
            if round % 5 == 0 || since.elapsed().as_millis() > 5 {
                queue.free_entries();
            }
        }
    }
    assert!(taken >= 50, "{taken}");
}

#[test]
fn dropped_commands_end_in_an_error_and_repeated_ones_too() {
    for (faults, expected) in [
        (Faults { dropped: 0.02, ..Faults::default() }, "expected a completion within"),
        (Faults { repeated: 0.02, ..Faults::default() }, "expected a command in flight"),
    ] {
        let options = SoftwareOptions { faults, ..SoftwareOptions::default() };
        let (drive, mut controller) = start(1 << 20, options);
        let mut queue = controller.queue_pair(16).unwrap();
        let buffers = Buffers::new(&drive.dma(), queue.capacity(), 4096);
        let reads = (0..10_000).map(|i| (i % 256 * 4096, 4096));
        let error = read_all(&controller, &mut queue, &buffers, reads, |_| ()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn late_and_failed_commands_are_told_apart_from_good_ones() {
    let faults = Faults {
        seed: 3,
        failed: 0.1,
        late: 0.1,
        delay: std::time::Duration::from_micros(300),
        shuffled: true,
        ..Faults::default()
    };
    let options = SoftwareOptions { faults, ..SoftwareOptions::default() };
    let (drive, mut controller) = start(1 << 20, options);
    let mut queue = controller.queue_pair(16).unwrap();
    let buffers = Buffers::new(&drive.dma(), queue.capacity(), 8192);
    let reads = (0..3000).map(|i| (i % 255 * 4096, 8192));
    let mut failed = 0;
    let done = read_all(&controller, &mut queue, &buffers, reads, |status| {
        assert_eq!(status, Status::UNRECOVERED_READ_ERROR);
        failed += 1;
    });
    assert_eq!(done.unwrap() + failed, 3000);
    assert!((200..400).contains(&failed), "{failed}");
}

#[test]
fn what_is_written_is_read_and_nothing_else_changes() {
    let (drive, mut controller) = start(64 << 10, SoftwareOptions::default());
    let page = Mapped::zeroed(&drive.dma(), 8192).unwrap();
    let (mut queue, namespace) = (controller.queue_pair(4).unwrap(), controller.namespace());
    let written: Vec<u8> = (0..8192).map(|i| (i % 251) as u8).collect();
    page.memory().write_bytes(0, &written);
    let at = page.bus()..page.bus() + 8192;
    for command in [
        namespace.write(at.clone(), 3 * 4096, None).unwrap(),
        Command { opcode: io::FLUSH, nsid: namespace.id, ..Command::default() },
    ] {
        queue.push(command).unwrap();
        queue.ring();
        assert_eq!(queue.wait(TIMING.command).unwrap().status, Status::SUCCESS);
    }
    let mut found = Vec::new();
    for offset in (0..64 << 10).step_by(8192) {
        queue.push(namespace.read(at.clone(), offset, None).unwrap()).unwrap();
        queue.ring();
        assert_eq!(queue.wait(TIMING.command).unwrap().status, Status::SUCCESS);
        let mut bytes = vec![0; 8192];
        page.memory().read_bytes(0, &mut bytes);
        found.extend(bytes);
    }
    let mut expected = common::content(64 << 10);
    expected[3 * 4096..5 * 4096].copy_from_slice(&written);
    assert!(found == expected);
    assert!(namespace.read(at.clone(), 60 << 10, None).is_err(), "past the end");
    assert!(namespace.read(at, 100, None).is_err(), "inside a block");
}

#[test]
fn a_modelled_drive_answers_no_sooner_than_its_figures_allow() {
    let (reads, latency) = (400_u32, std::time::Duration::from_millis(2));
    // 8192 bytes take 0.1 ms by bandwidth, and 0.05 ms by reads a second.
    let model = ModelledDrive::new(8192.0 * 10_000.0, 20_000.0, latency).unwrap();
    for queues in [1, 3] {
        let options =
            SoftwareOptions { drive: Some(model.another()), ..SoftwareOptions::default() };
        let (drive, mut controller) = start(1 << 20, options);
        let mut pairs: Vec<_> = (0..queues).map(|_| controller.queue_pair(64).unwrap()).collect();
        let begin = std::time::Instant::now();
        for queue in &mut pairs {
            let buffers = Buffers::new(&drive.dma(), queue.capacity(), 8192);
            let all = (0..u64::from(reads) / queues).map(|i| (i % 128 * 8192, 8192));
            let failed = |status| panic!("{status}");
            read_all(&controller, queue, &buffers, all, failed).unwrap();
        }
        let least = std::time::Duration::from_micros(100) * (reads / queues as u32 * queues as u32);
        assert!(begin.elapsed() >= least + latency, "{:?}", begin.elapsed());
    }
}

#[test]
fn a_reset_takes_all_queues_and_the_next_start_has_new_ones() {
    let (drive, mut controller) = start(1 << 20, SoftwareOptions::default());
    for round in 0..3_u64 {
        let mut queue = controller.queue_pair(8).unwrap();
        let buffers = Buffers::new(&drive.dma(), queue.capacity(), 4096);
        let reads = (0..100).map(|i| ((i + round) % 256 * 4096, 4096));
        let failed = |status| panic!("{status}");
        assert_eq!(read_all(&controller, &mut queue, &buffers, reads, failed).unwrap(), 100);
        // Commands in flight when the controller is reset are never completed.
        queue.push(buffers.read(&controller, 0, 0, 4096)).unwrap();
        drop(controller);
        queue.ring();
        assert!(queue.wait(std::time::Duration::from_millis(20)).is_err());
        controller = Controller::start(drive.registers(), drive.dma(), TIMING).unwrap();
    }
    // One that was left running, as by a process that was killed, is started again.
    std::mem::forget(controller);
    Controller::start(drive.registers(), drive.dma(), TIMING).unwrap();
}

#[test]
fn an_impossible_doorbell_is_a_failed_controller_until_it_is_reset() {
    let (drive, mut controller) = start(1 << 20, SoftwareOptions::default());
    let mut queue = controller.queue_pair(8).unwrap();
    let registers = drive.registers();
    let capabilities = Capabilities::from_bits(registers.load64(CAP));
    registers.store_release(capabilities.tail_doorbell(queue.id()), 4000);
    let since = std::time::Instant::now();
    while !controller.has_failed() && since.elapsed() < TIMING.command {
        std::thread::yield_now();
    }
    assert!(registers.load(CSTS) & CSTS_FATAL != 0);
    queue.push(Command::default()).unwrap();
    assert!(queue.wait(std::time::Duration::from_millis(20)).is_err());
    drop(controller);
    assert_eq!(registers.load(CSTS) & (CSTS_FATAL | CSTS_READY), 0);
    assert!(Controller::start(registers, drive.dma(), TIMING).is_ok());
}

#[test]
fn a_controller_that_does_not_start_is_told_in_its_time() {
    let registers = SharedMemory::zeroed(8192).unwrap();
    let drive = common::start(4096, SoftwareOptions::default()).0;
    registers.store64(CAP, drive.registers().load64(CAP));
    let error = Controller::start(registers.clone(), drive.dma(), TIMING).unwrap_err();
    assert!(error.to_string().starts_with("cannot start an NVMe controller: expected it to start"));
    assert_eq!(registers.load(CC) & CC_ENABLE, 0, "and is disabled again");
    // A device that is gone reads as ones.
    registers.store(CSTS, u32::MAX);
    let error = Controller::start(registers, drive.dma(), TIMING).unwrap_err();
    assert!(error.to_string().contains("0xffffffff"), "{error}");
}

#[test]
fn admin_queues_that_cannot_be_are_a_failed_controller() {
    let (drive, controller) = start(1 << 20, SoftwareOptions::default());
    drop(controller);
    let (registers, page) = (drive.registers(), Mapped::zeroed(&drive.dma(), 4096).unwrap());
    // Queues of one entry, and queues in no memory.
    for (sizes, bus) in [(0, page.bus()), (15 << 16 | 15, 0x1000)] {
        registers.store(AQA, sizes);
        registers.store64(ASQ, bus);
        registers.store64(ACQ, bus);
        registers.store_release(CC, CC_ENABLE);
        let since = std::time::Instant::now();
        while registers.load_acquire(CSTS) == 0 && since.elapsed() < TIMING.start {
            std::thread::yield_now();
        }
        assert_eq!(registers.load(CSTS), CSTS_FATAL);
        registers.store_release(CC, 0);
        while registers.load_acquire(CSTS) != 0 && since.elapsed() < 2 * TIMING.start {
            std::thread::yield_now();
        }
    }
    assert!(Controller::start(registers, drive.dma(), TIMING).is_ok());
}

#[test]
fn queues_end_where_the_controllers_do() {
    let options = SoftwareOptions { queue_pairs: 2, ..SoftwareOptions::default() };
    let (_drive, mut controller) = start(1 << 20, options);
    assert_eq!(controller.most_queue_pairs(), 2);
    let [a, b] = [(); 2].map(|()| controller.queue_pair(4).unwrap());
    assert_eq!((a.id(), b.id()), (1, 2));
    let error = controller.queue_pair(4).unwrap_err();
    assert!(error.to_string().contains("expected at most `2`, got one more"), "{error}");
}

#[test]
fn deleted_queues_make_room_for_others_and_their_commands_are_never_done() {
    let options = SoftwareOptions { queue_pairs: 2, ..SoftwareOptions::default() };
    let (drive, mut controller) = start(1 << 20, options);
    let [mut kept, mut deleted] = [(); 2].map(|()| controller.queue_pair(4).unwrap());
    let buffers = Buffers::new(&drive.dma(), 4, 4096);
    for round in 0..20 {
        let reads = (0..9).map(|page| (4096 * (page + round), 4096));
        read_all(&controller, &mut kept, &buffers, reads.clone(), |_| panic!("refused")).unwrap();
        read_all(&controller, &mut deleted, &buffers, reads, |_| panic!("refused")).unwrap();
        // A command that the drive is not told of before the queue is gone.
        let slot = deleted.push(buffers.read(&controller, 0, 0, 4096)).unwrap();
        controller.delete(deleted.id()).unwrap();
        deleted.ring();
        assert!(buffers.take(slot.into(), 4096).iter().all(|&byte| byte == 0xee));
        deleted = controller.queue_pair(4).unwrap();
        assert_eq!(deleted.id(), 2);
    }
    controller.delete(2).unwrap();
    for id in [0, 2, 3] {
        let error = controller.delete(id).unwrap_err();
        assert!(error.to_string().contains("expected one that was created"), "{error}");
    }
}

#[test]
fn a_buffer_is_mapped_once_for_each_drive_and_until_it_ends() {
    let drives = [0, 1].map(|_| start(DRIVE_BYTES, SoftwareOptions::default()).0);
    let buses = drives.each_ref().map(|drive| drive.dma());
    let mut buffer = AlignedBuf::zeroed(8192).unwrap();
    for _ in 0..2 {
        for dma in &buses {
            // SAFETY: no command names the address.
            let bus = unsafe { map_buffer(&mut buffer, dma) }.unwrap();
            assert_eq!(bus, buffer.as_ptr().addr() as u64);
        }
    }
    // As for all memory, a second mapping of the same bytes is refused while there is one.
    let start = std::ptr::NonNull::from(&mut *buffer).cast();
    // SAFETY: the bytes live to the test's end, and nothing accesses them.
    let same = unsafe { SharedMemory::from_owner(start, 8192, std::sync::Arc::new(())) };
    assert!(buses.iter().all(|dma| dma.map(&same).is_err()));
    buffer.detach();
    assert!(buses.iter().all(|dma| dma.map(&same).is_ok()));
}
