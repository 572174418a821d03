//! JSON that is sealed: its last line before the closing brace holds the CRC-32C of the file's own
//! text (with the eight digits taken as zeros), so a flipped bit anywhere in it is found.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tiergraph_core::{Error, ErrorKind, Result, crc32c};

/// The format version that this crate writes. It reads version 1 too, whose checksums have no salt.
pub const FORMAT_VERSION: u32 = 2;
/// The first version whose blocks and pages of rows have salted checksums.
pub(crate) const SALTED_VERSION: u32 = 2;
const OLDEST_VERSION: u32 = 1;

const SEAL_BEFORE: &str = ",\n  \"manifest_crc32c\": \"";
const SEAL_AFTER: &str = "\"\n}\n";
const SEAL_DIGITS: usize = 8;

/// Puts `content` into `dir/name` as sealed JSON, in place of any other in one step, and forces it
/// to the device.
pub(crate) fn write_sealed(content: &impl Serialize, dir: &Path, name: &str) -> Result<()> {
    let (path, new) = (dir.join(name), dir.join(format!(".{name}.new")));
    let text = seal(content)?;
    let io = |e| Error::io("write", path.display(), e);
    fs::write(&new, text).map_err(io)?;
    fs::File::open(&new).and_then(|f| f.sync_all()).map_err(io)?;
    fs::rename(&new, &path).and_then(|()| fs::File::open(dir)?.sync_all()).map_err(io)
}

/// Checks the version and the seal of JSON, and reads it; `file` names it in errors.
pub(crate) fn parse_sealed<T: DeserializeOwned>(bytes: &[u8], file: &str) -> Result<T> {
    let value: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
    let version = value.as_ref().and_then(|v| v.get("format_version"));
    let is_known =
        |version: u64| (u64::from(OLDEST_VERSION)..=u64::from(FORMAT_VERSION)).contains(&version);
    if let Some(version) = version.filter(|v| !v.as_u64().is_some_and(is_known)) {
        return Err(Error::new(ErrorKind::Format, "open")
            .object(file)
            .expected(format!("format version {OLDEST_VERSION} or {FORMAT_VERSION}"))
            .got(format!("version {version}"))
            .hint("open the graph with the version of tiergraph that built it"));
    }
    check_seal(bytes).map_err(|(x, y)| damaged(file).expected(x).got(y))?;
    serde_json::from_slice(bytes).map_err(|e| damaged(file).source(e))
}

/// The error of a file that says what it cannot.
pub(crate) fn damaged(file: &str) -> Error {
    Error::new(ErrorKind::Format, "open")
        .object(file)
        .hint("rebuild the graph, or restore the file from a copy")
}

/// JSON whose last line is its checksum.
pub(crate) fn seal(content: &impl Serialize) -> Result<String> {
    let json = serde_json::to_string_pretty(content)
        .map_err(|e| Error::new(ErrorKind::Input, "write the manifest").source(e))?;
    let body = json.strip_suffix("\n}").unwrap_or(&json);
    let crc = seal_of(body.as_bytes());
    Ok(format!("{body}{SEAL_BEFORE}{crc:08x}{SEAL_AFTER}"))
}

fn seal_of(body: &[u8]) -> u32 {
    let crc = crc32c::crc32c(body);
    let crc = crc32c::crc32c_append(crc, SEAL_BEFORE.as_bytes());
    let crc = crc32c::crc32c_append(crc, &[b'0'; SEAL_DIGITS]);
    crc32c::crc32c_append(crc, SEAL_AFTER.as_bytes())
}

/// `Err` holds what was expected and what was there.
fn check_seal(bytes: &[u8]) -> Result<(), (String, String)> {
    let unsealed = || {
        let end = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(40)..]).into_owned();
        ("an end with `manifest_crc32c`".to_owned(), format!("{end:?}"))
    };
    let rest = bytes.strip_suffix(SEAL_AFTER.as_bytes()).ok_or_else(unsealed)?;
    let (rest, digits) = rest.split_last_chunk::<SEAL_DIGITS>().ok_or_else(unsealed)?;
    let body = rest.strip_suffix(SEAL_BEFORE.as_bytes()).ok_or_else(unsealed)?;
    let computed = format!("{:08x}", seal_of(body));
    if computed.as_bytes() != digits {
        let stored = String::from_utf8_lossy(digits);
        return Err((format!("CRC-32C {stored}"), computed));
    }
    Ok(())
}
