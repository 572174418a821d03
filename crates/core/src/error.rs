//! One error type for the whole stack.
//!
//! A message has one form: ``cannot {op} `{object}`: expected {x}, got {y}``, then the chain of
//! causes, then an empty line and ``hint: {what to do}``. Lower case, no final period.

use std::error::Error as StdError;
use std::fmt;

/// `Result` with tiergraph's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, which callers match on. Each kind is a Python exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Bytes on disk are not what the format says (`tiergraph.FormatError`).
    Format,
    /// The operating system or a device refused or failed (`tiergraph.IoError`).
    Io,
    /// An accelerator failed or is missing (`tiergraph.DeviceError`).
    Device,
    /// A memory budget cannot hold what was asked for (`tiergraph.BudgetError`).
    Budget,
    /// The user's input or argument cannot be used (`tiergraph.InputError`).
    Input,
    /// A mistake of tiergraph itself: something panicked (`tiergraph.InternalError`).
    Internal,
    /// The user interrupted the run (`KeyboardInterrupt`).
    Interrupted,
}

/// An error: the operation that failed, its object, what was expected and found, the cause, and a hint.
///
/// ```
/// use tiergraph_core::{Error, ErrorKind};
/// let e = Error::new(ErrorKind::Format, "open").object("web.tg/manifest.json")
///     .expected("format version 1").got("version 9").hint("pip install --upgrade tiergraph");
/// assert_eq!(e.to_string(), "cannot open `web.tg/manifest.json`: expected format version 1, \
///     got version 9\n\nhint: pip install --upgrade tiergraph");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    op: String,
    object: Option<String>,
    expected: Option<String>,
    got: Option<String>,
    hint: Option<String>,
    enough_bytes: Option<u64>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Starts an error: `op` completes "cannot …", for example `read` or `parse line 7 of`.
    pub fn new(kind: ErrorKind, op: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            op: op.into(),
            object: None,
            expected: None,
            got: None,
            hint: None,
            enough_bytes: None,
            source: None,
        }))
    }

    /// An [`ErrorKind::Io`] error: `source` of the operating system, met while doing `op` to `object`.
    pub fn io(op: impl Into<String>, object: impl fmt::Display, source: std::io::Error) -> Self {
        Self::new(ErrorKind::Io, op).object(object).source(source)
    }

    /// Sets the object of the operation: a file, a column, an argument.
    #[must_use]
    pub fn object(mut self, object: impl fmt::Display) -> Self {
        self.0.object = Some(object.to_string());
        self
    }

    /// Sets what should have been there.
    #[must_use]
    pub fn expected(mut self, expected: impl fmt::Display) -> Self {
        self.0.expected = Some(expected.to_string());
        self
    }

    /// Sets what was there instead.
    #[must_use]
    pub fn got(mut self, got: impl fmt::Display) -> Self {
        self.0.got = Some(got.to_string());
        self
    }

    /// Sets the hint: what the user can do now.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.0.hint = Some(hint.to_string());
        self
    }

    /// Sets the hint, unless the error has one already.
    #[must_use]
    pub fn or_hint(mut self, hint: impl fmt::Display) -> Self {
        self.0.hint.get_or_insert_with(|| hint.to_string());
        self
    }

    /// Sets the memory budget, in bytes, with which the operation would succeed: the hint says it, and
    /// [`enough_bytes`](Self::enough_bytes) gives it to callers that lent the operation a part of their
    /// own.
    #[must_use]
    pub fn enough(mut self, bytes: u64) -> Self {
        self.0.enough_bytes = Some(bytes);
        self.hint(format!("run with `--memory {}MiB` or more", bytes.div_ceil(1 << 20)))
    }

    /// Sets the error that caused this one.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The error's kind, which callers match on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The memory budget, in bytes, with which the operation would succeed; `None` if it is not known.
    pub fn enough_bytes(&self) -> Option<u64> {
        self.0.enough_bytes
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &*self.0;
        write!(f, "cannot {}", e.op)?;
        if let Some(object) = &e.object {
            write!(f, " `{object}`")?;
        }
        match (&e.expected, &e.got) {
            (Some(x), Some(y)) => write!(f, ": expected {x}, got {y}")?,
            (Some(x), None) => write!(f, ": expected {x}")?,
            (None, Some(y)) => write!(f, ": {y}")?,
            (None, None) => {}
        }
        let mut cause = StdError::source(self);
        while let Some(c) = cause {
            write!(f, ": {c}")?;
            // A tiergraph error prints its own causes.
            cause = if c.is::<Error>() { None } else { c.source() };
        }
        if let Some(hint) = &e.hint {
            write!(f, "\n\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|s| s as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_prints_its_parts_in_order() {
        let os = std::io::Error::from_raw_os_error(5);
        let e = Error::io("read", "g.tg/tiles.blocks", os).got("nothing at offset 4096");
        assert_eq!(
            e.to_string(),
            "cannot read `g.tg/tiles.blocks`: nothing at offset 4096: \
             Input/output error (os error 5)"
        );
        assert_eq!(e.kind(), ErrorKind::Io);
    }
}
