//! Completion queue entries, and what their status says (Base 3.3.3.2, figures 90 to 97).

use std::fmt;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

/// Bytes of an entry of a completion queue (CC.IOCQES = 4).
pub const COMPLETION_BYTES: usize = 16;

/// A completion of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Completion {
    /// Dword 0: the command's result, if it has one.
    pub result: u32,
    /// Dword 1.
    pub reserved: u32,
    /// The entry of the submission queue up to which the controller has taken commands.
    pub sq_head: u16,
    /// The submission queue of the command.
    pub sq_id: u16,
    /// The command's identifier.
    pub cid: u16,
    /// Bit 0: the phase tag, which turns with each round of the queue. Bits 1 to 15: the status.
    pub phase_and_status: u16,
}

const _: () = {
    assert!(size_of::<Completion>() == COMPLETION_BYTES);
    assert!(offset_of!(Completion, sq_head) == 8);
    assert!(offset_of!(Completion, cid) == 12);
};

impl Completion {
    /// How the command ended.
    pub fn status(&self) -> Status {
        Status(self.phase_and_status >> 1)
    }

    /// The phase tag.
    pub fn phase(&self) -> bool {
        self.phase_and_status & 1 == 1
    }
}

/// How a command ended: a code, bits 0 to 7, of a type, bits 8 to 10.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u16);

/// Names of those statuses that drives give to what is asked of them here.
const NAMES: [(Status, &str); 16] = [
    (Status::SUCCESS, "success"),
    (Status::INVALID_OPCODE, "invalid opcode"),
    (Status::INVALID_FIELD, "invalid field"),
    (Status::ID_CONFLICT, "command identifier conflict"),
    (Status::DATA_TRANSFER_ERROR, "data transfer error"),
    (Status::INTERNAL_ERROR, "internal error"),
    (Status::ABORTED_WITH_QUEUE, "aborted as its queue was deleted"),
    (Status::INVALID_NAMESPACE, "invalid namespace"),
    (Status::INVALID_PRP_OFFSET, "invalid offset of a page"),
    (Status::LBA_OUT_OF_RANGE, "block past the end"),
    (Status::NAMESPACE_NOT_READY, "namespace not ready"),
    (Status::INVALID_COMPLETION_QUEUE, "invalid completion queue"),
    (Status::INVALID_QUEUE_ID, "invalid queue"),
    (Status::INVALID_QUEUE_SIZE, "invalid queue size"),
    (Status::INVALID_QUEUE_DELETION, "queue in use"),
    (Status::UNRECOVERED_READ_ERROR, "unrecovered read error"),
];

impl Status {
    /// The command was done.
    pub const SUCCESS: Self = Self(0x00);
    /// The opcode is none of the queue's.
    pub const INVALID_OPCODE: Self = Self(0x01);
    /// A field has a value that the command does not take, such as more blocks than one command moves.
    pub const INVALID_FIELD: Self = Self(0x02);
    /// Another command in flight has the same identifier.
    pub const ID_CONFLICT: Self = Self(0x03);
    /// The data could not be moved to or from memory.
    pub const DATA_TRANSFER_ERROR: Self = Self(0x04);
    /// The drive failed.
    pub const INTERNAL_ERROR: Self = Self(0x06);
    /// The submission queue was deleted with the command in it.
    pub const ABORTED_WITH_QUEUE: Self = Self(0x08);
    /// There is no such namespace.
    pub const INVALID_NAMESPACE: Self = Self(0x0b);
    /// A page's address has an offset where it may have none.
    pub const INVALID_PRP_OFFSET: Self = Self(0x13);
    /// A block is past the namespace's end.
    pub const LBA_OUT_OF_RANGE: Self = Self(0x80);
    /// The namespace is not ready.
    pub const NAMESPACE_NOT_READY: Self = Self(0x82);
    /// Of creating a submission queue: there is no such completion queue.
    pub const INVALID_COMPLETION_QUEUE: Self = Self(0x100);
    /// Of creating and deleting queues: the number is taken, or there is no such queue.
    pub const INVALID_QUEUE_ID: Self = Self(0x101);
    /// Of creating queues: the controller has none of that size.
    pub const INVALID_QUEUE_SIZE: Self = Self(0x102);
    /// Of deleting a completion queue: a submission queue completes to it.
    pub const INVALID_QUEUE_DELETION: Self = Self(0x10c);
    /// The medium did not give the blocks back.
    pub const UNRECOVERED_READ_ERROR: Self = Self(0x281);

    /// Whether the command was done.
    pub fn is_success(self) -> bool {
        self.0 & 0x7ff == 0
    }

    /// Whether the command may succeed when it is repeated (the bit "do not retry" is not set).
    pub fn may_be_repeated(self) -> bool {
        self.0 & 1 << 14 == 0
    }
}

impl std::error::Error for Status {}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = Self(self.0 & 0x7ff);
        match NAMES.iter().find(|(status, _)| *status == code) {
            Some((_, name)) => write!(f, "status {:#x}, {name}", code.0),
            None => write!(f, "status {:#x}", code.0),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_has_identifier_phase_and_status() {
        let mut bytes = [0_u8; 16];
        bytes[8..].copy_from_slice(&[7, 0, 2, 0, 0x34, 0x12, 0x01, 0x81]);
        let completion: Completion = bytemuck::cast(bytes);
        assert_eq!((completion.sq_head, completion.sq_id, completion.cid), (7, 2, 0x1234));
        assert!(completion.phase() && !completion.status().is_success());
        assert!(!completion.status().may_be_repeated());
        assert_eq!(completion.status().to_string(), "status 0x80, block past the end");
        assert_eq!(Status(0x2ab).to_string(), "status 0x2ab");
        // More information is available, and nothing went wrong.
        assert!(Status(1 << 13).is_success());
    }
}
