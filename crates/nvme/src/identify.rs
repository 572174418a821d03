//! What Identify commands give: pages of 4 KiB, of which a few fields are used here (Base 5.17.2, NVM
//! Command Set 4.1.5).

/// Bytes of a description.
pub const IDENTIFY_BYTES: usize = 4096;

/// A controller's description (Base figure 276).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerInfo {
    /// The serial number, without the spaces behind it.
    pub serial: String,
    /// The model, without the spaces behind it.
    pub model: String,
    /// The most bytes that one command moves, in units of the smallest page; `None`: no limit.
    pub most_pages: Option<u64>,
    /// The number of namespaces.
    pub namespaces: u32,
}

const SERIAL: std::ops::Range<usize> = 4..24;
const MODEL: std::ops::Range<usize> = 24..64;
const MDTS: usize = 77;
const NAMESPACES: usize = 516;

impl ControllerInfo {
    /// Reads a description.
    pub fn from_bytes(page: &[u8; IDENTIFY_BYTES]) -> Self {
        let text = |range| String::from_utf8_lossy(&page[range]).trim_end().to_owned();
        let most_pages = match page[MDTS] {
            0 => None,
            log2 => Some(1_u64.checked_shl(log2.into()).unwrap_or(u64::MAX)),
        };
        Self {
            serial: text(SERIAL),
            model: text(MODEL),
            most_pages,
            namespaces: u32_at(page, NAMESPACES),
        }
    }

    /// Writes the description. `most_pages` is a power of two.
    pub fn to_bytes(&self) -> Box<[u8; IDENTIFY_BYTES]> {
        let mut page = Box::new([0; IDENTIFY_BYTES]);
        for (range, text) in [(SERIAL, &self.serial), (MODEL, &self.model)] {
            let padded = text.bytes().chain(std::iter::repeat(b' '));
            page[range].iter_mut().zip(padded).for_each(|(to, from)| *to = from);
        }
        page[MDTS] = self.most_pages.map_or(0, |pages| pages.ilog2() as u8);
        // Required and largest sizes of entries: 2^6 and 2^4 bytes.
        (page[512], page[513]) = (0x66, 0x44);
        page[NAMESPACES..NAMESPACES + 4].copy_from_slice(&self.namespaces.to_le_bytes());
        page
    }
}

/// A namespace's description (NVM Command Set figure 97).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespaceInfo {
    /// The number of logical blocks.
    pub blocks: u64,
    /// Bytes of a logical block: a power of two from 512 on.
    pub block_bytes: u64,
    /// Bytes of metadata that every block has.
    pub metadata_bytes: u16,
}

const FORMATTED_SIZE: usize = 26;
const FORMATS: usize = 128;

impl NamespaceInfo {
    /// Reads a description; `None` if it says nothing that can be (a namespace that is not active).
    pub fn from_bytes(page: &[u8; IDENTIFY_BYTES]) -> Option<Self> {
        // Bits 0 to 3 of FLBAS, and bits 5 and 6 above them, number the format.
        let flbas = usize::from(page[FORMATTED_SIZE]);
        let format = u32_at(page, FORMATS + 4 * (flbas & 15 | (flbas >> 5 & 3) << 4));
        let (metadata_bytes, log2) = (format as u16, format >> 16 & 0xff);
        let blocks = u64::from(u32_at(page, 4)) << 32 | u64::from(u32_at(page, 0));
        let block_bytes = (9..=30).contains(&log2).then(|| 1 << log2)?;
        (blocks > 0).then_some(Self { blocks, block_bytes, metadata_bytes })
    }

    /// Writes the description, with one format.
    pub fn to_bytes(&self) -> Box<[u8; IDENTIFY_BYTES]> {
        let mut page = Box::new([0; IDENTIFY_BYTES]);
        for at in [0, 8, 16] {
            page[at..at + 8].copy_from_slice(&self.blocks.to_le_bytes());
        }
        page[FORMATS..FORMATS + 2].copy_from_slice(&self.metadata_bytes.to_le_bytes());
        page[FORMATS + 2] = self.block_bytes.ilog2() as u8;
        page
    }
}

fn u32_at(page: &[u8; IDENTIFY_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read_as_they_are_written() {
        let controller = ControllerInfo {
            serial: "S1".into(),
            model: "a model of forty characters, cut there!!".into(),
            most_pages: Some(128),
            namespaces: 1,
        };
        assert_eq!(ControllerInfo::from_bytes(&controller.to_bytes()), controller);
        for block_bytes in [512, 4096] {
            let namespace = NamespaceInfo { blocks: 1 << 33, block_bytes, metadata_bytes: 0 };
            assert_eq!(NamespaceInfo::from_bytes(&namespace.to_bytes()), Some(namespace));
        }
        assert_eq!(NamespaceInfo::from_bytes(&[0; 4096]), None, "no active namespace");
        let mut second =
            *NamespaceInfo { blocks: 9, block_bytes: 512, metadata_bytes: 0 }.to_bytes();
        second[FORMATTED_SIZE] = 1;
        second[FORMATS + 4..FORMATS + 8].copy_from_slice(&[8, 0, 12, 0]);
        let expected = NamespaceInfo { blocks: 9, block_bytes: 4096, metadata_bytes: 8 };
        assert_eq!(NamespaceInfo::from_bytes(&second), Some(expected));
    }
}
