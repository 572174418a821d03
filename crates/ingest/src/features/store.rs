//! Storing a matrix of features.

use tiergraph_core::{Cancel, Error, ErrorKind, Progress, Result};
use tiergraph_format::features::{
    FeatureFiles, FeatureType, FeatureWriter, FeaturesEntry, NewFiles, RowLayout,
};
use tiergraph_format::flat::FlatWriter;
use tiergraph_format::sink::FileSink;

use super::place::{Places, check_permutation};
use super::rows::{RowSource, for_each_batch};
use super::scatter::Scatter;
use super::target::Target;
use crate::build::Ticker;

/// What is done with NaN and infinities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NotFinite {
    /// They are an error that names their place.
    #[default]
    Refuse,
    /// They are stored, where the type has them.
    Keep,
}

/// A matrix of features to be stored.
pub struct NewFeatures {
    /// The name of the features.
    pub name: String,
    /// The type in which values are stored.
    pub dtype: FeatureType,
    /// What is done with NaN and infinities.
    pub not_finite: NotFinite,
    /// The row of each vertex in the graph's order; `None` for that order itself.
    pub rows: Option<Vec<u32>>,
    /// For each row of the source, the position in the user's order of the vertex that it belongs to; `None` for
    /// rows in that order.
    pub positions: Option<Vec<u32>>,
    /// The source of the rows.
    pub source: Box<dyn RowSource>,
}

impl NewFeatures {
    /// Features stored as 32-bit floats without NaN, with rows in the graph's order.
    pub fn new(name: &str, source: impl RowSource + 'static) -> Self {
        Self {
            name: name.into(),
            dtype: FeatureType::default(),
            not_finite: NotFinite::default(),
            rows: None,
            positions: None,
            source: Box::new(source),
        }
    }

    /// Fails if the source knows that it has another number of rows than the graph has vertices.
    pub(super) fn check(&mut self, vertices: u64) -> Result<()> {
        let shape = self.source.shape()?;
        let encoder = self.encoder(RowLayout::new(self.dtype, shape.dim)?, vertices);
        match shape.rows {
            Some(rows) if rows != vertices => Err(encoder.wrong_count(rows)),
            _ => Ok(()),
        }
    }

    /// Writes the feature rows of vertices; returns the entries of the new files.
    pub(super) fn write(
        self,
        target: &mut Target<'_>,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<NewFiles> {
        let files = FeatureFiles::of(&self.name);
        self.write_files(&files, target, progress, cancel)
    }

    /// Writes the feature rows of edges, `target.vertices` of them, in the order of the edges.
    pub(crate) fn write_of_edges(
        self,
        target: &mut Target<'_>,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<NewFiles> {
        let files = FeatureFiles::of_edges(&self.name);
        let mut new = self.write_files(&files, target, progress, cancel)?;
        new.edge_features = std::mem::take(&mut new.features);
        Ok(new)
    }

    fn write_files(
        mut self,
        files: &FeatureFiles,
        target: &mut Target<'_>,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<NewFiles> {
        self.check(target.vertices)?;
        let (budget, vertices, block_bytes) = (target.budget, target.vertices, target.block_bytes);
        let layout = RowLayout::new(self.dtype, self.source.shape()?.dim)?;
        let _block = budget.reserve(block_bytes.into(), "a block of feature rows")?;
        let mut writer = FeatureWriter::create(&mut *target.to, files, layout, block_bytes)?;
        let places = Places::new(target.order.as_ref(), self.rows.as_deref(), vertices, budget)?;
        let positions = self.positions.take();
        if let Some(positions) = &positions {
            check_permutation(positions, vertices)?;
        }
        let bytes = positions.as_ref().map_or(0, |positions| positions.len() as u64 * 4);
        let _positions = budget.reserve(bytes, "the vertices of feature rows")?;
        let mut encoder = self.encoder(layout, vertices);
        let mut ticker = Ticker::new(progress, "features", "rows", vertices);
        let mut each_row = |take: &mut dyn FnMut(u64, &[u8]) -> Result<()>| {
            for_each_batch(&mut *self.source, |values| {
                cancel.check("store features")?;
                ticker.add((values.len() / layout.dim()) as u64);
                encoder.encode(values, take)
            })?;
            encoder.finish()
        };
        if places.is_none() && positions.is_none() {
            each_row(&mut |_, row| writer.push(row))?;
        } else {
            let place = |number: u64| {
                let position = match &positions {
                    None => number,
                    Some(of) => u64::from(*of.get(usize::try_from(number).ok()?)?),
                };
                places.as_ref().map_or(Some(position), |places| places.row(position).map(u64::from))
            };
            let path = target.to.temporary();
            let mut scatter = Scatter::new(vertices, layout.row_bytes(), budget, &path)?;
            each_row(&mut |number, row| {
                place(number).map_or(Ok(()), |place| scatter.push(place, row))
            })?;
            drop((places, positions));
            scatter.finish(cancel, |row| writer.push(row))?;
        }
        self.entries(layout, writer, files, target)
    }

    fn encoder(&self, layout: RowLayout, vertices: u64) -> Encoder {
        Encoder {
            layout,
            vertices,
            name: self.name.clone(),
            described: self.source.describe(),
            not_finite: self.not_finite,
            position: 0,
            row: vec![0; layout.row_bytes()],
        }
    }

    fn entries(
        &self,
        layout: RowLayout,
        writer: FeatureWriter<FileSink>,
        files: &FeatureFiles,
        target: &mut Target<'_>,
    ) -> Result<NewFiles> {
        let rows = writer.rows();
        let mut new = NewFiles { files: writer.finish_files(files)?, ..NewFiles::default() };
        if let Some(rows) = &self.rows {
            let mut ids = FlatWriter::create(&target.to.flat(&files.ids)?)?;
            ids.extend(rows)?;
            new.files.insert(files.ids.clone(), ids.finish()?);
        }
        new.features.insert(self.name.clone(), FeaturesEntry { layout, rows });
        new.sources.insert(format!("features.{}", self.name), self.source.describe());
        Ok(new)
    }
}

/// An encoder of rows as bytes, which fails for values that cannot be stored.
struct Encoder {
    layout: RowLayout,
    vertices: u64,
    name: String,
    described: String,
    not_finite: NotFinite,
    /// The position of the next row.
    position: u64,
    row: Vec<u8>,
}

impl Encoder {
    /// Calls `take(position, bytes)` for every row of a batch.
    fn encode(
        &mut self,
        batch: &[f32],
        take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for values in batch.chunks(self.layout.dim()) {
            if values.len() < self.layout.dim() || self.position == self.vertices {
                return Err(self.wrong_count(self.position + 1));
            }
            if self.not_finite == NotFinite::Refuse && !all_finite(values) {
                let column = values.iter().position(|value| !value.is_finite()).unwrap_or(0);
                let error = self.misfit(column, values[column], "finite numbers");
                return Err(error.hint("`--allow-nan` stores them as they are, in f32 or f16"));
            }
            self.layout.encode(values, &mut self.row).map_err(|column| {
                let expected = format!("numbers that {} holds", self.layout.dtype());
                self.misfit(column, values[column], &expected)
                    .hint("`--feature-dtype f32` stores them")
            })?;
            take(self.position, &self.row)?;
            self.position += 1;
        }
        Ok(())
    }

    /// Fails if there were fewer rows than vertices.
    fn finish(&self) -> Result<()> {
        if self.position < self.vertices {
            return Err(self.wrong_count(self.position));
        }
        Ok(())
    }

    fn misfit(&self, column: usize, value: f32, expected: &str) -> Error {
        self.refusal()
            .expected(expected)
            .got(format!("{value} in row {}, column {column}", self.position))
    }

    fn wrong_count(&self, rows: u64) -> Error {
        let more = if rows > self.vertices { " or more" } else { "" };
        self.refusal()
            .expected(format!("a row for each of {} vertices", self.vertices))
            .got(format!("{rows} rows{more}"))
            .hint(
                "rows belong to ids in ascending order; `--vertices` says |V| where the last ids \
                 have no edge",
            )
    }

    fn refusal(&self) -> Error {
        Error::new(ErrorKind::Input, format!("store features `{}` of", self.name))
            .object(&self.described)
    }
}

/// Whether no value is infinite or NaN (with an exponent of ones), without a branch for each value.
fn all_finite(values: &[f32]) -> bool {
    let magnitude = |value: &f32| (value.to_bits() & i32::MAX as u32) as i32;
    let largest = values.iter().map(magnitude).fold(0, i32::max);
    largest < f32::INFINITY.to_bits() as i32
}
