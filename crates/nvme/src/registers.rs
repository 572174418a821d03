//! The controller's registers (Base 3.1.3): where they are in BAR 0, and what is in them.

/// CAP, 64 bits: what the controller can do.
pub const CAP: usize = 0x00;
/// VS: the version of the specification.
pub const VS: usize = 0x08;
/// CC: configuration.
pub const CC: usize = 0x14;
/// CSTS: status.
pub const CSTS: usize = 0x1c;
/// AQA: sizes of the admin queues.
pub const AQA: usize = 0x24;
/// ASQ, 64 bits: the bus address of the admin submission queue.
pub const ASQ: usize = 0x28;
/// ACQ, 64 bits: the bus address of the admin completion queue.
pub const ACQ: usize = 0x30;
/// The first doorbell.
pub const DOORBELLS: usize = 0x1000;

/// CC.EN: the controller shall process commands.
pub const CC_ENABLE: u32 = 1;
/// CC.SHN: the controller shall shut down.
pub const CC_SHUTDOWN: u32 = 1 << 14;
/// Sizes of entries (CC.IOSQES = 6, CC.IOCQES = 4), the NVM command set, pages of 4 KiB.
pub const CC_SIZES: u32 = 6 << 16 | 4 << 20;
/// CSTS.RDY: the controller processes commands.
pub const CSTS_READY: u32 = 1;
/// CSTS.CFS: the controller has failed and must be reset.
pub const CSTS_FATAL: u32 = 1 << 1;
/// CSTS.SHST: shutting down has ended.
pub const CSTS_SHUT_DOWN: u32 = 2 << 2;
/// The part of CSTS.SHST.
pub const CSTS_SHUTDOWN_BITS: u32 = 3 << 2;

/// What a controller can do: the register CAP (Base 3.1.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The most entries of a queue.
    pub queue_entries: u32,
    /// The longest that starting or stopping takes, in milliseconds.
    pub timeout_ms: u64,
    /// Bytes from a doorbell to the next.
    pub doorbell_stride: usize,
    /// Bytes of the smallest page that commands can name.
    pub least_page_bytes: u64,
}

impl Capabilities {
    /// Reads the register's fields.
    pub fn from_bits(cap: u64) -> Self {
        let bits = |from: u32, count: u32| cap >> from & ((1 << count) - 1);
        Self {
            queue_entries: bits(0, 16) as u32 + 1,
            timeout_ms: bits(24, 8) * 500,
            doorbell_stride: 4 << bits(32, 4),
            least_page_bytes: 4096 << bits(48, 4),
        }
    }

    /// The register with these fields, for the NVM command set and queues in one piece.
    pub fn to_bits(self) -> u64 {
        let log2 = |value: u64, unit: u64| u64::from((value / unit).ilog2());
        u64::from(self.queue_entries - 1)
            | 1 << 16
            | self.timeout_ms.div_ceil(500) << 24
            | log2(self.doorbell_stride as u64, 4) << 32
            | 1 << 37
            | log2(self.least_page_bytes, 4096) << 48
    }

    /// The byte of BAR 0 at which the submission queue's doorbell of queue pair `id` is.
    pub fn tail_doorbell(&self, id: u16) -> usize {
        DOORBELLS + 2 * usize::from(id) * self.doorbell_stride
    }

    /// The byte of BAR 0 at which the completion queue's doorbell of queue pair `id` is.
    pub fn head_doorbell(&self, id: u16) -> usize {
        DOORBELLS + (2 * usize::from(id) + 1) * self.doorbell_stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_as_they_are_written() {
        let capabilities = Capabilities {
            queue_entries: 1024,
            timeout_ms: 7500,
            doorbell_stride: 8,
            least_page_bytes: 4096,
        };
        let bits = capabilities.to_bits();
        assert_eq!(bits, 0x21_0f01_03ff);
        assert_eq!(Capabilities::from_bits(bits), capabilities);
        assert_eq!(capabilities.tail_doorbell(3), 0x1030);
        assert_eq!(capabilities.head_doorbell(3), 0x1038);
    }
}
