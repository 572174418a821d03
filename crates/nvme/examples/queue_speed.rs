//! How many commands a second go through a queue pair and the software controller, one thread each:
//! `cargo run --release -p tiergraph-nvme --example queue_speed [DEPTH]`. Reads of 512 bytes that move
//! nothing (the control path alone), and of 512 and 4096 bytes that are copied from memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tiergraph_core::Result;
use tiergraph_nvme::controller::Mapped;
use tiergraph_nvme::{
    Command, Controller, MemoryStorage, SharedMemory, SoftwareController, SoftwareOptions, Status,
    Storage, Timing,
};

const SECONDS: Duration = Duration::from_secs(2);

/// Completions that are waited for before they are taken.
const AT_ONCE: u16 = 64;

/// Blocks that nobody moves.
#[derive(Debug)]
struct Nothing(u64);

impl Storage for Nothing {
    fn bytes(&self) -> u64 {
        self.0
    }

    fn read(&self, _: u64, _: &SharedMemory, _: usize, _: usize) -> Result<(), Status> {
        Ok(())
    }
}

fn main() -> Result<()> {
    let depth = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(256);
    let options = || SoftwareOptions { block_bytes: 512, ..SoftwareOptions::default() };
    let bytes = 256 << 20;
    for len in [512, 4096] {
        let drive = SoftwareController::start(Nothing(bytes), options())?;
        report("moving nothing", len, depth, commands_a_second(&drive, depth, len)?);
        let drive =
            SoftwareController::start(MemoryStorage::new(&vec![7; bytes as usize])?, options())?;
        report("from memory", len, depth, commands_a_second(&drive, depth, len)?);
    }
    Ok(())
}

fn report(what: &str, len: u64, depth: usize, rate: f64) {
    let (millions, gb) = (rate / 1e6, rate * len as f64 / 1e9);
    println!("{what:15} {len:5} B, depth {depth}: {millions:6.2} M commands/s, {gb:6.2} GB/s");
}

fn commands_a_second(drive: &SoftwareController, depth: usize, len: u64) -> Result<f64> {
    let dma = drive.dma();
    let mut controller = Controller::start(drive.registers(), Arc::clone(&dma), Timing::default())?;
    let (mut queue, namespace) = (controller.queue_pair(depth)?, controller.namespace());
    let data = Mapped::zeroed(&dma, queue.capacity() * 4096)?;
    let blocks = namespace.bytes() / len;
    let (mut asked, mut done) = (0_u64, 0_u64);
    let begin = Instant::now();
    while begin.elapsed() < SECONDS {
        for _ in 0..64 {
            while let Some(slot) = queue.next_slot() {
                let bus = data.bus() + u64::from(slot) * 4096;
                // Spread over the drive, and never the block before.
                let offset = asked.wrapping_mul(0x9E37_79B9) % blocks * len;
                let command: Command = namespace.read(bus..bus + len, offset, None)?;
                queue.push(command);
                asked += 1;
            }
            queue.ring();
            // Whoever looks at completions as they are written takes their memory from who writes them.
            while !queue.has_ended(AT_ONCE.min(queue.in_flight() as u16 / 2)) {
                std::hint::spin_loop();
            }
            for _ in 0..AT_ONCE {
                let Some(ended) = queue.poll()? else { break };
                assert!(ended.status.is_success(), "{}", ended.status);
                done += 1;
            }
            queue.free_entries();
        }
    }
    Ok(done as f64 / begin.elapsed().as_secs_f64())
}
