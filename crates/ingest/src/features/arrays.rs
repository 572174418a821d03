//! Labels and splits: `.npy` files as users gave them, checked on their way in.
//!
//! They stay in the user's order, so that NumPy maps them beside the user's other arrays.

use std::io::Read;

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::features::{ArrayRole, NewFiles};
use tiergraph_format::flat::FlatWriter;

use super::store::NotFinite;
use super::target::Target;
use crate::npy::{Kind, NpyHeader};

/// Bytes that are copied at a time: a multiple of every element.
const PIECE_BYTES: usize = 1 << 18;

/// An array of labels, or a split, to be stored.
pub struct NewArray {
    /// The role of the array: labels or a split.
    pub role: ArrayRole,
    /// The array's name.
    pub name: String,
    /// What is done with NaN and infinities among labels.
    pub not_finite: NotFinite,
    /// Where the array comes from, for messages.
    pub described: String,
    header: NpyHeader,
    data: Box<dyn Read + Send>,
}

impl NewArray {
    /// Labels or a split from the bytes of a `.npy` file, whose header is read at once.
    ///
    /// # Errors
    /// I/O errors; input errors for another type, order or number of dimensions than the role has.
    pub fn new(
        role: ArrayRole,
        name: &str,
        described: String,
        mut data: impl Read + Send + 'static,
    ) -> Result<Self> {
        let header = NpyHeader::read(&mut data, &described)?;
        let (name, not_finite) = (name.into(), NotFinite::default());
        let new = Self { role, name, not_finite, described, header, data: Box::new(data) };
        let (dimensions, kind) = (new.header.shape.len(), new.header.number.kind);
        match role {
            ArrayRole::Labels if !matches!(dimensions, 1 | 2) => {
                Err(new
                    .refuse("the shape (N,) or (N, T)".into(), format!("{:?}", new.header.shape)))
            }
            // Several splits are columns of one mask, as in PyG.
            ArrayRole::Split if dimensions != 1 && (dimensions != 2 || kind != Kind::Bool) => {
                let got = format!("the shape {:?}", new.header.shape);
                Err(new.refuse("one dimension, or the columns of a mask".into(), got))
            }
            ArrayRole::Split if kind == Kind::Float => {
                Err(new.refuse("a mask of booleans, or positions".into(), "floats".into()))
            }
            _ => Ok(new),
        }
    }

    /// Whether it is a mask or has a label a vertex, and not a list of positions.
    fn is_by_vertex(&self) -> bool {
        self.role == ArrayRole::Labels || self.header.number.kind == Kind::Bool
    }

    /// The number of vertices, where the array has a label or an element of a mask for each.
    pub(super) fn rows(&self) -> Option<u64> {
        self.is_by_vertex().then(|| self.header.shape.first().copied().unwrap_or(0))
    }

    /// Fails if there is another number of labels than of vertices.
    pub(super) fn check(&self, vertices: u64) -> Result<()> {
        let Some(rows) = self.rows().filter(|rows| *rows != vertices) else { return Ok(()) };
        Err(self.refuse(format!("one for each of {vertices} vertices"), format!("{rows}")))
    }

    /// Copies the array to its file and checks it; returns the file's entries.
    pub(super) fn write(mut self, target: &mut Target<'_>, cancel: &Cancel) -> Result<NewFiles> {
        self.check(target.vertices)?;
        let file = self.role.file(&self.name);
        let mut writer = FlatWriter::create(&target.to.flat(&file)?)?;
        writer.extend(&self.header.raw)?;
        let failed = |e| Error::io("read", &self.described, e);
        let bytes = self.header.data_bytes().unwrap_or(u64::MAX);
        let (mut piece, mut done) = (vec![0; PIECE_BYTES], 0);
        while done < bytes {
            cancel.check("store labels")?;
            let piece = &mut piece[..(bytes - done).min(PIECE_BYTES as u64) as usize];
            self.data.read_exact(piece).map_err(failed)?;
            self.check_values(piece, done, target.vertices)?;
            writer.extend(piece)?;
            done += piece.len() as u64;
        }
        if self.data.read(&mut [0]).map_err(failed)? > 0 {
            return Err(self.refuse(format!("{bytes} bytes after the header"), "more".into()));
        }
        let mut new = NewFiles::default();
        new.files.insert(file, writer.finish()?);
        new.sources.insert(format!("{}.{}", self.role, self.name), self.described);
        Ok(new)
    }

    /// Checks the values in `piece`, which begins `done` bytes into the array.
    fn check_values(&self, piece: &[u8], done: u64, vertices: u64) -> Result<()> {
        let number = self.header.number;
        let first = done / number.bytes as u64;
        let at = |index: usize| format!("at {}", first + index as u64);
        match (self.role, number.kind) {
            (ArrayRole::Labels, Kind::Float) if self.not_finite == NotFinite::Refuse => {
                let mut values = Vec::new();
                number.decode(piece, &mut values);
                match values.iter().position(|value| !value.is_finite()) {
                    Some(index) => Err(self
                        .refuse("finite numbers".into(), format!("{} {}", values[index], at(index)))
                        .hint(
                            "mark vertices without a label by -1, or store them with `--allow-nan`",
                        )),
                    None => Ok(()),
                }
            }
            (ArrayRole::Split, Kind::Signed | Kind::Unsigned) => {
                let mut values = Vec::new();
                number.integers(piece, &mut values);
                let outside = |value: &i128| !(0..i128::from(vertices)).contains(value);
                match values.iter().position(outside) {
                    Some(index) => Err(self.refuse(
                        format!("positions of 0 to {}", vertices.saturating_sub(1)),
                        format!("{} {}", values[index], at(index)),
                    )),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn refuse(&self, expected: String, got: String) -> Error {
        Error::new(ErrorKind::Input, format!("store {} `{}` of", self.role, self.name))
            .object(&self.described)
            .expected(expected)
            .got(got)
    }
}
