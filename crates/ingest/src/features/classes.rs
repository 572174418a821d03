//! Features, labels and a split for synthetic graphs.
//!
//! Every value is a function of the seed, the vertex and the column, so that any number of threads
//! writes the same bytes, on any machine: only integers are random, and one rounding makes each a
//! float.
//!
//! A row is the mean of its vertex's class plus noise of variance 1 in each column. Any two means
//! lie about [`SEPARATION`] apart, so a row alone often looks like another class's, and the mean of
//! a community's neighbours seldom does: there is something for a graph network to learn.

use std::io::{self, Read};
use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result, threads};
use tiergraph_format::features::{ArrayRole, FeatureType};

use super::arrays::NewArray;
use super::attach::{Attachment, Attachments};
use super::rows::{RowSource, Shape};
use super::store::NewFeatures;
use crate::generate::hash::Counter;
use crate::npy::header_of;

/// The distance of two classes' means, in standard deviations of the noise.
pub const SEPARATION: f32 = 2.0;
/// The share of training vertices, and that of validation vertices, of 2^64; the rest is for tests.
const TRAIN_BELOW: u64 = u64::MAX / 10;
const VALIDATE_BELOW: u64 = u64::MAX / 5;
/// Values made at a time, about: a whole number of rows.
const BATCH_VALUES: usize = 1 << 18;

/// The rule by which vertices have classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Classes {
    /// No classes: features are noise, and there are no labels.
    None,
    /// One of so many classes, at random.
    Random(u64),
    /// The class of its community: vertex v is in community v mod `communities`, which has class (v mod
    /// `communities`) mod `classes`.
    Communities {
        /// The number of the graph's communities.
        communities: u64,
        /// The number of classes, at most that of communities.
        classes: u64,
    },
}

/// A model of synthetic features and labels of a graph's vertices.
#[derive(Debug, Clone)]
pub struct ClassModel {
    vertices: u64,
    dim: usize,
    classes: Classes,
    seed: u64,
    noise: Counter,
    draws: Counter,
    /// The means of the classes' rows, one after the other.
    means: Vec<f32>,
}

impl ClassModel {
    /// A model of features of `dim` columns (none if 0) and labels for `vertices` vertices.
    ///
    /// # Errors
    /// An input error for no classes, or more than communities.
    pub fn new(vertices: u64, dim: usize, classes: Classes, seed: u64) -> Result<Self> {
        let count = match classes {
            Classes::None => 0,
            Classes::Random(classes) => classes,
            Classes::Communities { communities, classes } => {
                if classes > communities {
                    return Err(refuse(format!("at most {communities}, the communities"), classes));
                }
                classes
            }
        };
        if count == 0 && classes != Classes::None || count > 1 << 20 {
            return Err(refuse("1 to 2^20".into(), count));
        }
        let words = Counter::new(seed, 0x6d65_616e);
        let each = SEPARATION / (2.0 * dim.max(1) as f32).sqrt();
        let means = (0..count * dim as u64).map(|at| normal(words.word(at)) * each).collect();
        let (noise, draws) = (Counter::new(seed, 0x6e6f_6973), Counter::new(seed, 0x636c_6173));
        Ok(Self { vertices, dim, classes, seed, noise, draws, means })
    }

    /// The class of a vertex; 0 without classes.
    pub fn class(&self, vertex: u64) -> u64 {
        match self.classes {
            Classes::None => 0,
            Classes::Random(classes) => self.draws.below(vertex, classes),
            Classes::Communities { communities, classes } => vertex % communities % classes,
        }
    }

    /// The features `x` (if it has columns), the labels `y` (if it has classes) and the splits
    /// `train`, `val` and `test` of a tenth, a tenth and the rest of the vertices.
    ///
    /// # Errors
    /// As [`Attachments::new`].
    pub fn attachments(self, dtype: FeatureType, threads: usize) -> Result<Attachments> {
        let mut all = Vec::new();
        let model = Arc::new(self);
        if model.dim > 0 {
            let rows = ClassRows { model: Arc::clone(&model), threads, next: 0 };
            all.push(Attachment::Features(NewFeatures { dtype, ..NewFeatures::new("x", rows) }));
        }
        if model.classes != Classes::None {
            let mut array = |role, name, descr, value: fn(&Self, u64) -> Value| {
                let data = ClassArray::new(Arc::clone(&model), descr, value);
                let described = format!("{role} of {}", model.describe());
                NewArray::new(role, name, described, data)
                    .map(|new| all.push(Attachment::Array(new)))
            };
            array(ArrayRole::Labels, "y", "<i8", |m, v| Value::Long(m.class(v) as i64))?;
            array(ArrayRole::Split, "train", "|b1", |m, v| Value::Bool(m.part(v) == 0))?;
            array(ArrayRole::Split, "val", "|b1", |m, v| Value::Bool(m.part(v) == 1))?;
            array(ArrayRole::Split, "test", "|b1", |m, v| Value::Bool(m.part(v) == 2))?;
        }
        Attachments::new(all)
    }

    /// The split of a vertex: 0 for training, 1 for validation, 2 for tests.
    fn part(&self, vertex: u64) -> u8 {
        // Words that no class comes from: classes are drawn at places below 2^32.
        let word = self.draws.word(vertex | 1 << 63);
        u8::from(word >= TRAIN_BELOW) + u8::from(word >= VALIDATE_BELOW)
    }

    fn describe(&self) -> String {
        let Self { vertices, dim, classes, seed, .. } = self;
        format!("classes({vertices} × {dim}, {classes:?}, seed={seed})")
    }

    /// Fills `values` with whole rows, from that of vertex `first` on.
    fn fill(&self, first: u64, values: &mut [f32]) {
        for (vertex, row) in (first..).zip(values.chunks_mut(self.dim)) {
            let at = vertex.wrapping_mul(self.dim as u64);
            for (value, at) in row.iter_mut().zip(at..) {
                *value = normal(self.noise.word(at));
            }
            let mean = self.class(vertex) as usize * self.dim;
            for (value, mean) in row.iter_mut().zip(self.means.get(mean..).unwrap_or(&[])) {
                *value += mean;
            }
        }
    }
}

/// A nearly normal number of mean 0 and variance 1: the sum of a word's four 16-bit parts (the
/// distribution of J. Irwin and P. Hall, 1927), which is exact on every machine.
#[inline]
fn normal(word: u64) -> f32 {
    let parts = [0, 16, 32, 48].map(|shift| (word >> shift & 0xffff) as i32);
    let sum = parts.iter().sum::<i32>() - 2 * 0xffff;
    // Four times the variance of an even number below 2^16 is (2^32 − 1) / 3.
    const DEVIATION: f32 = 37_837.227;
    sum as f32 * (1.0 / DEVIATION)
}

fn refuse(expected: String, got: u64) -> Error {
    Error::new(ErrorKind::Input, "generate classes").expected(expected).got(got)
}

/// A source of the rows of the model's features.
struct ClassRows {
    model: Arc<ClassModel>,
    threads: usize,
    next: u64,
}

impl RowSource for ClassRows {
    fn describe(&self) -> String {
        self.model.describe()
    }

    fn shape(&mut self) -> Result<Shape> {
        Ok(Shape { rows: Some(self.model.vertices), dim: self.model.dim })
    }

    fn next_rows(&mut self, values: &mut Vec<f32>) -> Result<bool> {
        let (model, dim) = (&*self.model, self.model.dim);
        let left = model.vertices - self.next;
        let rows = ((BATCH_VALUES / dim).max(self.threads.max(1)) as u64).min(left);
        values.resize(rows as usize * dim, 0.0);
        let part = (rows as usize).div_ceil(self.threads.max(1)).max(1);
        std::thread::scope(|scope| -> Result<()> {
            let parts = (self.next..).step_by(part).zip(values.chunks_mut(part * dim));
            for (first, values) in parts {
                threads::start_in(scope, "features", move || model.fill(first, values))?;
            }
            Ok(())
        })?;
        self.next += rows;
        Ok(rows > 0)
    }
}

/// The value that an array has for a vertex: a label, or an entry of a mask.
enum Value {
    Long(i64),
    Bool(bool),
}

/// A reader of a `.npy` file with a value for each vertex, made while it is read.
struct ClassArray {
    model: Arc<ClassModel>,
    value: fn(&ClassModel, u64) -> Value,
    next: u64,
    /// Bytes that are made and not read yet.
    ready: Vec<u8>,
    read: usize,
}

impl ClassArray {
    fn new(model: Arc<ClassModel>, descr: &str, value: fn(&ClassModel, u64) -> Value) -> Self {
        let ready = header_of(descr, &[model.vertices]);
        Self { model, value, next: 0, ready, read: 0 }
    }
}

impl Read for ClassArray {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.ready.len() {
            let end = (self.next + 4096).min(self.model.vertices);
            (self.read, self.ready) = (0, Vec::with_capacity(8 * 4096));
            for vertex in self.next..end {
                match (self.value)(&self.model, vertex) {
                    Value::Long(value) => self.ready.extend_from_slice(&value.to_le_bytes()),
                    Value::Bool(value) => self.ready.push(value.into()),
                }
            }
            self.next = end;
        }
        let count = (&self.ready[self.read..]).read(buffer)?;
        self.read += count;
        Ok(count)
    }
}
