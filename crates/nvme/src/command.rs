//! Submission queue entries: the 64-byte commands (Base 3.3.3.1, figure 87).

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

/// Bytes of a command in a submission queue (CC.IOSQES = 6).
pub const COMMAND_BYTES: usize = 64;

/// A command. The queue that it goes into sets its identifier, `cid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Command {
    /// Bits 0 to 7 of dword 0: what shall be done.
    pub opcode: u8,
    /// Bits 8 to 15 of dword 0: fused operations and SGLs, neither of which is used here.
    pub flags: u8,
    /// The command identifier, which no other command in flight in the queue has.
    pub cid: u16,
    /// The namespace.
    pub nsid: u32,
    /// Dwords 2 and 3.
    pub cdw2: [u32; 2],
    /// The bus address of metadata.
    pub metadata: u64,
    /// The first page of the data (Base 4.1.1).
    pub prp1: u64,
    /// The second page of the data, or the bus address of a list of pages.
    pub prp2: u64,
    /// Dwords 10 to 15, whose meaning is the opcode's.
    pub cdw10: [u32; 6],
}

const _: () = {
    assert!(size_of::<Command>() == COMMAND_BYTES);
    assert!(offset_of!(Command, nsid) == 4);
    assert!(offset_of!(Command, metadata) == 16);
    assert!(offset_of!(Command, prp1) == 24);
    assert!(offset_of!(Command, prp2) == 32);
    assert!(offset_of!(Command, cdw10) == 40);
};

/// Opcodes of the admin queue (Base 5, figure 138).
pub mod admin {
    /// Deletes an I/O submission queue (Base 5.6).
    pub const DELETE_SUBMISSION_QUEUE: u8 = 0x00;
    /// Creates an I/O submission queue (Base 5.5).
    pub const CREATE_SUBMISSION_QUEUE: u8 = 0x01;
    /// Deletes an I/O completion queue (Base 5.7).
    pub const DELETE_COMPLETION_QUEUE: u8 = 0x04;
    /// Creates an I/O completion queue (Base 5.4).
    pub const CREATE_COMPLETION_QUEUE: u8 = 0x05;
    /// Describes the controller or a namespace (Base 5.17).
    pub const IDENTIFY: u8 = 0x06;
    /// Sets a feature (Base 5.27).
    pub const SET_FEATURES: u8 = 0x09;
}

/// Opcodes of I/O queues (NVM Command Set 3.2, figure 16).
pub mod io {
    /// Makes what was written durable.
    pub const FLUSH: u8 = 0x00;
    /// Writes blocks.
    pub const WRITE: u8 = 0x01;
    /// Reads blocks.
    pub const READ: u8 = 0x02;
}

/// What an Identify command describes (Base 5.17, figure 274).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Identify {
    /// A namespace: its size and formats.
    Namespace = 0,
    /// The controller.
    Controller = 1,
    /// The identifiers of active namespaces.
    ActiveNamespaces = 2,
}

/// The feature "number of queues" (Base 5.27.1.5).
pub const NUMBER_OF_QUEUES: u32 = 7;

impl Command {
    /// Has 4 KiB of a description written to the page at `prp1`.
    pub fn identify(what: Identify, nsid: u32, prp1: u64) -> Self {
        let cdw10 = [what as u32, 0, 0, 0, 0, 0];
        Self { opcode: admin::IDENTIFY, nsid, prp1, cdw10, ..Self::default() }
    }

    /// Asks for `pairs` I/O submission and completion queues each; the completion says how many there are.
    pub fn set_queues(pairs: u16) -> Self {
        let count = u32::from(pairs.max(1) - 1);
        let cdw10 = [NUMBER_OF_QUEUES, count << 16 | count, 0, 0, 0, 0];
        Self { opcode: admin::SET_FEATURES, cdw10, ..Self::default() }
    }

    /// Creates completion queue `id` of `size` entries at `bus`, in one piece and without interrupts.
    pub fn create_completion_queue(id: u16, size: u16, bus: u64) -> Self {
        let cdw10 = [queue_words(id, size), CONTIGUOUS, 0, 0, 0, 0];
        Self { opcode: admin::CREATE_COMPLETION_QUEUE, prp1: bus, cdw10, ..Self::default() }
    }

    /// Creates submission queue `id` of `size` entries at `bus`, in one piece, which completes to the
    /// completion queue of the same number.
    pub fn create_submission_queue(id: u16, size: u16, bus: u64) -> Self {
        let cdw10 = [queue_words(id, size), u32::from(id) << 16 | CONTIGUOUS, 0, 0, 0, 0];
        Self { opcode: admin::CREATE_SUBMISSION_QUEUE, prp1: bus, cdw10, ..Self::default() }
    }

    /// Deletes submission queue `id` with the commands in it.
    pub fn delete_submission_queue(id: u16) -> Self {
        Self::delete(admin::DELETE_SUBMISSION_QUEUE, id)
    }

    /// Deletes completion queue `id`, to which no submission queue completes any more.
    pub fn delete_completion_queue(id: u16) -> Self {
        Self::delete(admin::DELETE_COMPLETION_QUEUE, id)
    }

    fn delete(opcode: u8, id: u16) -> Self {
        Self { opcode, cdw10: [id.into(), 0, 0, 0, 0, 0], ..Self::default() }
    }

    /// Moves `blocks` (1 to 65,536) logical blocks from `first` on, by `opcode` to or from memory.
    pub fn move_blocks(opcode: u8, nsid: u32, first: u64, blocks: u32) -> Self {
        debug_assert!((1..=1 << 16).contains(&blocks));
        let cdw10 = [first as u32, (first >> 32) as u32, blocks - 1, 0, 0, 0];
        Self { opcode, nsid, cdw10, ..Self::default() }
    }

    /// The first logical block of a command that moves blocks.
    pub fn first_block(&self) -> u64 {
        u64::from(self.cdw10[1]) << 32 | u64::from(self.cdw10[0])
    }

    /// The number of logical blocks of a command that moves blocks.
    pub fn blocks(&self) -> u32 {
        (self.cdw10[2] & 0xffff) + 1
    }
}

/// "Physically contiguous" in dword 11 of commands that create queues.
pub(crate) const CONTIGUOUS: u32 = 1;

/// Dword 10 of commands that create queues: their size, less one, and number.
fn queue_words(id: u16, size: u16) -> u32 {
    u32::from(size - 1) << 16 | u32::from(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_encoded_as_the_specification_says() {
        let read = Command {
            cid: 0x1234,
            prp1: 0x1_0000_1000,
            prp2: 0x2_0000_2000,
            ..Command::move_blocks(io::READ, 1, 0x5_0000_0006, 8)
        };
        let mut expected = [0; 64];
        expected[..4].copy_from_slice(&[0x02, 0, 0x34, 0x12]);
        expected[4] = 1;
        expected[24..32].copy_from_slice(&[0, 0x10, 0, 0, 1, 0, 0, 0]);
        expected[32..40].copy_from_slice(&[0, 0x20, 0, 0, 2, 0, 0, 0]);
        expected[40..50].copy_from_slice(&[6, 0, 0, 0, 5, 0, 0, 0, 7, 0]);
        assert_eq!(bytemuck::bytes_of(&read), expected);
        assert_eq!((read.first_block(), read.blocks()), (0x5_0000_0006, 8));
    }

    #[test]
    fn queues_are_created_with_their_size_less_one() {
        let create = Command::create_submission_queue(3, 256, 0x7000);
        assert_eq!((create.opcode, create.prp1), (0x01, 0x7000));
        assert_eq!(create.cdw10[..2], [255 << 16 | 3, 3 << 16 | 1]);
        assert_eq!(Command::create_completion_queue(3, 256, 0).cdw10[..2], [255 << 16 | 3, 1]);
        assert_eq!(Command::set_queues(4).cdw10[..2], [7, 3 << 16 | 3]);
        let delete = Command::delete_submission_queue(3);
        assert_eq!((delete.opcode, delete.cdw10[..2].to_vec()), (0x00, vec![3, 0]));
        assert_eq!(Command::delete_completion_queue(3).opcode, 0x04);
    }
}
