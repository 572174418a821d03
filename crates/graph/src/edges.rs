//! Values of edges: columns in the order of arcs, and features by the edges' numbers.

use bytemuck::Pod;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::edges::{Side, ValueType, column_file, columns, numbers_file};
use tiergraph_format::flat::{self, Element};

use crate::{Direction, Features, Graph};

/// The edge of every arc of a rows file, by the arc's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgeNumbers {
    /// Fewer than 2³² edges.
    Narrow(Vec<u32>),
    /// More.
    Wide(Vec<u64>),
}

impl EdgeNumbers {
    /// The edge of an arc.
    ///
    /// # Panics
    /// When there is no such arc.
    #[inline]
    pub fn get(&self, arc: u64) -> u64 {
        match self {
            Self::Narrow(numbers) => numbers[arc as usize].into(),
            Self::Wide(numbers) => numbers[arc as usize],
        }
    }
}

impl Graph {
    /// The columns of values that the edges have, by name.
    pub fn edge_columns(&self) -> Vec<(&str, ValueType)> {
        columns(self.manifest().files.keys().map(String::as_str))
    }

    /// The names of the edges' features, ascending.
    pub fn edge_feature_names(&self) -> impl Iterator<Item = &str> {
        self.manifest().edge_features.keys().map(String::as_str)
    }

    /// Whether it is known which of the user's edges arcs are of.
    pub fn has_edge_numbers(&self, direction: Direction) -> bool {
        self.manifest().files.contains_key(&numbers_file(self.side(direction)))
    }

    /// Bytes of what [`edge_numbers`](Self::edge_numbers) gives; 0 without.
    pub fn edge_numbers_bytes(&self, direction: Direction) -> u64 {
        let file = numbers_file(self.side(direction));
        self.manifest().files.get(&file).map_or(0, |entry| entry.bytes)
    }

    /// The edges of the arcs of rows in this direction; `None` where they are not stored. The
    /// caller reserves their memory.
    ///
    /// # Errors
    /// What reading gives; [`ErrorKind::Format`] for damage.
    pub fn edge_numbers(&self, direction: Direction) -> Result<Option<EdgeNumbers>> {
        if !self.has_edge_numbers(direction) {
            return Ok(None);
        }
        let file = numbers_file(self.side(direction));
        let wide = self.dir().entry(&file)?.bytes > 4 * self.manifest().arcs;
        Ok(Some(match wide {
            true => EdgeNumbers::Wide(self.arc_values(&file)?),
            false => EdgeNumbers::Narrow(self.arc_values(&file)?),
        }))
    }

    /// The column `name` of 32-bit floats, in the order of the arcs of rows in this direction. The
    /// caller reserves its memory: 4 bytes an arc.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] where the graph has no such column; what reading gives.
    pub fn edge_floats(&self, direction: Direction, name: &str) -> Result<Vec<f32>> {
        self.edge_column(direction, name, ValueType::F32)
    }

    /// As [`edge_floats`](Self::edge_floats), of 64-bit integers.
    ///
    /// # Errors
    /// As [`edge_floats`](Self::edge_floats).
    pub fn edge_integers(&self, direction: Direction, name: &str) -> Result<Vec<i64>> {
        self.edge_column(direction, name, ValueType::I64)
    }

    /// The features `name` of edges, whose rows are by the edges' numbers.
    ///
    /// # Errors
    /// As [`Graph::features`].
    pub fn edge_features(&self, name: &str) -> Result<&Features> {
        match self.edge_features.iter().find(|of| of.name == name) {
            Some(of) => of.get(self),
            None => Err(self.no_values("features", name, self.edge_feature_names().collect())),
        }
    }

    fn edge_column<T: Element>(
        &self,
        direction: Direction,
        name: &str,
        kind: ValueType,
    ) -> Result<Vec<T>> {
        let file = column_file(self.side(direction), name, kind);
        if self.manifest().files.contains_key(&file) {
            return self.arc_values(&file);
        }
        let columns = self.edge_columns().into_iter().filter(|&(_, of)| of == kind);
        let names = columns.map(|(name, _)| name).collect();
        Err(self.no_values(&format!("{kind} column"), name, names))
    }

    fn arc_values<T: Pod + Element>(&self, file: &str) -> Result<Vec<T>> {
        let values: Vec<T> = flat::read(&self.dir().path().join(file), self.dir().entry(file)?)?;
        let arcs = self.manifest().arcs;
        if values.len() as u64 == arcs {
            return Ok(values);
        }
        Err(Error::new(ErrorKind::Format, "use")
            .object(file)
            .expected(format!("a value for each of {arcs} arcs"))
            .got(values.len())
            .hint("store the values of edges again"))
    }

    /// The rows file that a direction is read from.
    fn side(&self, direction: Direction) -> Side {
        match direction {
            Direction::In if self.manifest().directed => Side::In,
            _ => Side::Out,
        }
    }

    fn no_values(&self, what: &str, name: &str, names: Vec<&str>) -> Error {
        let error = Error::new(ErrorKind::Input, format!("use the edges' {what}")).object(name);
        match names.is_empty() {
            true => error
                .expected(format!("one in `{}`", self.dir().path().display()))
                .got("none")
                .hint("`tiergraph.add_edge_values` stores them with a graph"),
            false => error.expected(format!("one of {}", names.join(", "))),
        }
    }
}
