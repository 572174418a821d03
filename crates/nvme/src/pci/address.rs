//! The addresses of devices on the PCI bus.

use std::fmt;
use std::str::FromStr;

use tiergraph_core::{Error, ErrorKind, Result};

/// The address of a device's function on the PCI bus, written `0000:01:00.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

impl FromStr for PciAddress {
    type Err = Error;

    /// Reads an address; the domain may be left out where it is 0.
    fn from_str(text: &str) -> Result<Self> {
        parse(text).ok_or_else(|| {
            Error::new(ErrorKind::Input, "use the PCI address")
                .object(text)
                .expected("a domain, bus, device and function, as in `0000:01:00.0`")
                .hint("`tiergraph drive list` names the drives of this machine")
        })
    }
}

fn parse(text: &str) -> Option<PciAddress> {
    let (rest, function) = text.split_once('.')?;
    let mut parts: Vec<&str> = rest.split(':').collect();
    if parts.len() == 2 {
        parts.insert(0, "0");
    }
    let [domain, bus, device] = parts[..] else { return None };
    let hex = |part: &str, most: u32| {
        let is_hex = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(part, 16).ok().filter(|&value| is_hex && value <= most)
    };
    Some(PciAddress {
        domain: hex(domain, u32::MAX)?,
        bus: hex(bus, 0xff)? as u8,
        device: hex(device, 0x1f)? as u8,
        function: hex(function, 7)? as u8,
    })
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["0000:01:00.0", "10000:e1:1f.7"] {
            assert_eq!(text.parse::<PciAddress>().unwrap().to_string(), text);
        }
        assert_eq!("01:00.0".parse::<PciAddress>().unwrap().to_string(), "0000:01:00.0");
        let wrong =
            ["", "01:00", "0000:01:00.8", "0:0:20.0", "0000:100:00.0", "+1:00.0", "a:b:c:d.0"];
        for text in wrong {
            let error = text.parse::<PciAddress>().unwrap_err().to_string();
            assert!(error.contains("as in `0000:01:00.0`"), "{error}");
        }
    }
}
