//! The software controller against arbitrary commands: a status for each, nothing written outside what is
//! mapped, and a controller that goes on.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Buffers, TIMING, read_all, start};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tiergraph_nvme::command::{COMMAND_BYTES, io};
use tiergraph_nvme::completion::COMPLETION_BYTES;
use tiergraph_nvme::controller::Mapped;
use tiergraph_nvme::queue::{Doorbells, QueuePair};
use tiergraph_nvme::registers::{ACQ, AQA, ASQ, CAP, CC, CC_ENABLE, CC_SIZES, CSTS, Capabilities};
use tiergraph_nvme::{Command, Controller, SharedMemory, SoftwareController, SoftwareOptions};

/// Commands whose fields are often near what is possible.
fn commands(bus: u64) -> impl Strategy<Value = Command> {
    let address = prop_oneof![
        any::<u64>(),
        (0_u64..20_000).prop_map(move |at| bus + at),
        (0_u64..5).prop_map(move |page| bus + page * 4096),
    ];
    let small = || prop_oneof![any::<u32>(), 0_u32..300];
    let opcode = prop_oneof![any::<u8>(), 0_u8..12];
    let words = prop::array::uniform6(small());
    let flags = prop_oneof![4 => Just(0), 1 => any::<u8>()];
    (opcode, flags, 0_u32..3, address.clone(), address, words).prop_map(
        |(opcode, flags, nsid, prp1, prp2, cdw10)| Command {
            opcode,
            flags,
            nsid,
            prp1,
            prp2,
            cdw10,
            ..Command::default()
        },
    )
}

#[test]
fn each_command_has_a_completion_and_the_drive_goes_on() {
    let mut runner = TestRunner::deterministic();
    for _ in 0..24 {
        let (drive, mut controller) = start(1 << 20, SoftwareOptions::default());
        // What is mapped lies in the middle of memory of which the rest must stay as it is.
        let guarded = SharedMemory::zeroed(12 * 4096).unwrap();
        let fill = [0x5a; 4096];
        (0..12).for_each(|page| guarded.write_bytes(page * 4096, &fill));
        let mapped = Mapped::new(&drive.dma(), guarded.part(4 * 4096..8 * 4096)).unwrap();
        let mut queue = controller.queue_pair(8).unwrap();
        let strategy = commands(mapped.bus());
        for _ in 0..1000 {
            let mut command = strategy.new_tree(&mut runner).unwrap().current();
            if command.opcode == io::WRITE {
                // The drive's content is compared below.
                command.opcode = io::READ;
            }
            queue.push(command).unwrap();
            queue.ring();
            queue.wait(TIMING.command).unwrap();
        }
        for page in (0..4).chain(8..12) {
            let mut found = [0; 4096];
            guarded.read_bytes(page * 4096, &mut found);
            assert!(found == fill, "page {page} is not mapped");
        }
        read_everything(&drive, &controller, &mut queue);
    }
}

/// Compares all bytes of a drive of 1 MiB.
fn read_everything(drive: &SoftwareController, controller: &Controller, queue: &mut QueuePair) {
    let buffers = Buffers::new(&drive.dma(), queue.capacity(), 4096);
    let reads = (0..256).map(|i| (i * 4096, 4096));
    let failed = |status| panic!("{status}");
    assert_eq!(read_all(controller, queue, &buffers, reads, failed).unwrap(), 256);
}

#[test]
fn arbitrary_admin_commands_have_completions() {
    let (drive, controller) = start(1 << 20, SoftwareOptions::default());
    drop(controller);
    let (registers, dma) = (drive.registers(), drive.dma());
    let capabilities = Capabilities::from_bits(registers.load64(CAP));
    let mut runner = TestRunner::deterministic();
    for _ in 0..20 {
        let submissions = Mapped::zeroed(&dma, 16 * COMMAND_BYTES).unwrap();
        let completions = Mapped::zeroed(&dma, 16 * COMPLETION_BYTES).unwrap();
        let data = Mapped::zeroed(&dma, 8 * 4096).unwrap();
        registers.store(AQA, 15 << 16 | 15);
        registers.store64(ASQ, submissions.bus());
        registers.store64(ACQ, completions.bus());
        registers.store_release(CC, CC_SIZES | CC_ENABLE);
        while registers.load_acquire(CSTS) != 1 {
            std::thread::yield_now();
        }
        let doorbells = Doorbells::new(&registers, &capabilities, 0);
        let (sq, cq) = (submissions.memory().clone(), completions.memory().clone());
        let mut admin = QueuePair::new(0, 16, sq, cq, doorbells);
        let strategy = commands(data.bus());
        for _ in 0..200 {
            let command = strategy.new_tree(&mut runner).unwrap().current();
            admin.push(command).unwrap();
            admin.ring();
            admin.wait(TIMING.command).unwrap();
        }
        registers.store_release(CC, 0);
        while registers.load_acquire(CSTS) != 0 {
            std::thread::yield_now();
        }
    }
    let mut controller = Controller::start(registers, dma, TIMING).unwrap();
    let mut queue = controller.queue_pair(4).unwrap();
    read_everything(&drive, &controller, &mut queue);
}
