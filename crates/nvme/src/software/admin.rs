//! The admin queue of a software controller (Base 5): who it is, and its I/O queues.

use std::sync::atomic::Ordering;

use super::file_reads::FileReads;
use super::served::{Finished, Ring, Served};
use super::{Drive, NAMESPACE};
use crate::SharedMemory;
use crate::command::{
    COMMAND_BYTES, CONTIGUOUS, Command, Identify, NUMBER_OF_QUEUES, admin as opcodes,
};
use crate::completion::{COMPLETION_BYTES, Status};
use crate::dma::PAGE_BYTES;
use crate::identify::{ControllerInfo, IDENTIFY_BYTES, NamespaceInfo};
use crate::registers::{ACQ, AQA, ASQ};

/// The admin queues of a controller that is enabled, and the completion queues that were created.
#[derive(Debug)]
pub(super) struct Admin {
    queue: Served,
    /// By number, less one: a completion queue, and whether a submission queue completes to it.
    completion_queues: Vec<Option<(Ring, bool)>>,
}

impl Admin {
    /// The admin queues that the registers name; `None` if there is no memory for them.
    pub fn new(drive: &Drive) -> Option<Self> {
        let sizes = drive.registers.load(AQA);
        let entries = |shift: u32| (sizes >> shift & 0xfff) as u16 + 1;
        let ring = |register, entries: u16, bytes: usize| {
            let bus = drive.registers.load64(register);
            drive.ring(bus, entries, bytes)
        };
        let submissions = ring(ASQ, entries(0), COMMAND_BYTES)?;
        let completions = ring(ACQ, entries(16), COMPLETION_BYTES)?;
        let completion_queues = vec![None; usize::from(drive.options.queue_pairs)];
        Some(Self { queue: Served::new(0, submissions, completions, drive), completion_queues })
    }

    /// Does the commands in the admin queue; whether there were any.
    pub fn serve(&mut self, drive: &Drive) -> bool {
        let Self { queue, completion_queues } = self;
        queue.serve(drive, &mut FileReads::default(), |queue, command, _| {
            let (status, result) = match execute(queue, completion_queues, drive, command) {
                Ok(result) => (Status::SUCCESS, result),
                Err(status) => (status, 0),
            };
            Finished { cid: command.cid, status, result }
        })
    }
}

type CompletionQueues = [Option<(Ring, bool)>];

fn execute(
    queue: &mut Served,
    completion_queues: &mut CompletionQueues,
    drive: &Drive,
    command: &Command,
) -> Result<u32, Status> {
    let (id, low) = (command.cdw10[0] as u16, command.cdw10[0] & 0xff);
    match command.opcode {
        opcodes::IDENTIFY => identify(queue, drive, command).map(|()| 0),
        opcodes::SET_FEATURES if low == NUMBER_OF_QUEUES => {
            let asked = command.cdw10[1];
            let most = u32::from(drive.options.queue_pairs - 1);
            Ok((asked & 0xffff).min(most) | (asked >> 16).min(most) << 16)
        }
        opcodes::SET_FEATURES => Err(Status::INVALID_FIELD),
        opcodes::CREATE_COMPLETION_QUEUE => {
            let ring = new_ring(drive, command, COMPLETION_BYTES)?;
            match slot(completion_queues, id)? {
                Some(_) => Err(Status::INVALID_QUEUE_ID),
                free => {
                    *free = Some((ring, false));
                    Ok(0)
                }
            }
        }
        opcodes::CREATE_SUBMISSION_QUEUE => {
            let completes_to = (command.cdw10[1] >> 16) as u16;
            let completions = slot(completion_queues, completes_to)
                .ok()
                .and_then(Option::as_mut)
                // One submission queue a completion queue, of the same number.
                .filter(|(_, is_used)| completes_to == id && !*is_used)
                .ok_or(Status::INVALID_COMPLETION_QUEUE)?;
            let submissions = new_ring(drive, command, COMMAND_BYTES)?;
            completions.1 = true;
            // Whatever was written there while there was no such queue.
            drive.clear_doorbells(id);
            let served = Served::new(id, submissions, completions.0.clone(), drive);
            *lock(drive, id) = Some(served);
            drive.created.fetch_max(id.into(), Ordering::Relaxed);
            Ok(0)
        }
        opcodes::DELETE_SUBMISSION_QUEUE => match slot(completion_queues, id)? {
            Some((_, is_used @ true)) => {
                *is_used = false;
                // Commands in it are aborted without a word, which Base 5.6 allows.
                *lock(drive, id) = None;
                Ok(0)
            }
            _ => Err(Status::INVALID_QUEUE_ID),
        },
        opcodes::DELETE_COMPLETION_QUEUE => match slot(completion_queues, id)? {
            Some((_, true)) => Err(Status::INVALID_QUEUE_DELETION),
            Some(_) => {
                completion_queues[usize::from(id) - 1] = None;
                Ok(0)
            }
            None => Err(Status::INVALID_QUEUE_ID),
        },
        _ => Err(Status::INVALID_OPCODE),
    }
}

fn slot(
    completion_queues: &mut CompletionQueues,
    id: u16,
) -> Result<&mut Option<(Ring, bool)>, Status> {
    let at = usize::from(id).checked_sub(1).ok_or(Status::INVALID_QUEUE_ID)?;
    completion_queues.get_mut(at).ok_or(Status::INVALID_QUEUE_ID)
}

fn lock(drive: &Drive, id: u16) -> std::sync::MutexGuard<'_, Option<Served>> {
    drive.queues[usize::from(id) - 1].lock()
}

/// The memory of a queue that a command creates (Base 5.4, 5.5).
fn new_ring(drive: &Drive, command: &Command, entry_bytes: usize) -> Result<Ring, Status> {
    let entries = (command.cdw10[0] >> 16) + 1;
    if !(2..=drive.capabilities.queue_entries.min(1 << 15)).contains(&entries) {
        return Err(Status::INVALID_QUEUE_SIZE);
    }
    // CAP.CQR: queues in one piece, at a page.
    if command.cdw10[1] & CONTIGUOUS == 0 {
        return Err(Status::INVALID_FIELD);
    }
    if !command.prp1.is_multiple_of(PAGE_BYTES) {
        return Err(Status::INVALID_PRP_OFFSET);
    }
    drive.ring(command.prp1, entries as u16, entry_bytes).ok_or(Status::INVALID_FIELD)
}

/// Writes a description (Base 5.17).
fn identify(queue: &mut Served, drive: &Drive, command: &Command) -> Result<(), Status> {
    let page = match command.cdw10[0] & 0xff {
        what if what == Identify::Controller as u32 => {
            let most_pages = drive.options.most_bytes / drive.capabilities.least_page_bytes;
            ControllerInfo {
                serial: drive.options.serial.clone(),
                model: drive.options.model.clone(),
                most_pages: Some(most_pages),
                namespaces: 1,
            }
            .to_bytes()
        }
        what if what == Identify::Namespace as u32 => {
            let block_bytes = drive.options.block_bytes;
            let blocks = drive.storage.bytes() / block_bytes;
            match command.nsid {
                NAMESPACE => NamespaceInfo { blocks, block_bytes, metadata_bytes: 0 }.to_bytes(),
                _ => return Err(Status::INVALID_NAMESPACE),
            }
        }
        what if what == Identify::ActiveNamespaces as u32 => {
            let mut page = Box::new([0; IDENTIFY_BYTES]);
            if command.nsid < NAMESPACE {
                page[..4].copy_from_slice(&NAMESPACE.to_le_bytes());
            }
            page
        }
        _ => return Err(Status::INVALID_FIELD),
    };
    let write = |memory: &SharedMemory, at| memory.write_bytes(at, &page[..]);
    let (memory, at) =
        queue.find(command.prp1, IDENTIFY_BYTES).ok_or(Status::DATA_TRANSFER_ERROR)?;
    write(memory, at);
    Ok(())
}
