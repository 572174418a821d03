//! A batch of edges, column by column.

/// The two ends of each edge of a batch, in columns of one width and one length.
///
/// Ids are the user's: dense or sparse. Most graphs fit 32 bits, so 32-bit input is never widened;
/// a source goes over to 64 bits with the first batch that needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoints {
    /// Every id of the batch fits 32 bits.
    U32 {
        /// The source of each edge.
        src: Vec<u32>,
        /// The target of each edge.
        dst: Vec<u32>,
    },
    /// Ids of 64 bits.
    U64 {
        /// The source of each edge.
        src: Vec<u64>,
        /// The target of each edge.
        dst: Vec<u64>,
    },
}

/// A batch of edges, column by column. [`EdgeSource::next_batch`](super::EdgeSource::next_batch)
/// fills it again and again, so its columns are allocated once.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeBatch {
    /// The ends of each edge.
    pub ends: Endpoints,
    /// A weight for each edge, finite and not negative; `None` if the source is not weighted.
    pub weights: Option<Vec<f64>>,
}

impl Default for EdgeBatch {
    fn default() -> Self {
        Self { ends: Endpoints::U32 { src: Vec::new(), dst: Vec::new() }, weights: None }
    }
}

impl EdgeBatch {
    /// The number of edges in the batch.
    pub fn len(&self) -> usize {
        match &self.ends {
            Endpoints::U32 { src, .. } => src.len(),
            Endpoints::U64 { src, .. } => src.len(),
        }
    }

    /// Whether the batch has no edges.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the edges and keeps the memory.
    pub fn clear(&mut self) {
        match &mut self.ends {
            Endpoints::U32 { src, dst } => {
                src.clear();
                dst.clear();
            }
            Endpoints::U64 { src, dst } => {
                src.clear();
                dst.clear();
            }
        }
        if let Some(weights) = &mut self.weights {
            weights.clear();
        }
    }

    /// Both columns of ids, emptied and 32 bits wide.
    pub fn as_u32_mut(&mut self) -> (&mut Vec<u32>, &mut Vec<u32>) {
        if !matches!(self.ends, Endpoints::U32 { .. }) {
            self.ends = Endpoints::U32 { src: Vec::new(), dst: Vec::new() };
        }
        self.clear();
        match &mut self.ends {
            Endpoints::U32 { src, dst } => (src, dst),
            Endpoints::U64 { .. } => unreachable!("the columns were made 32 bits wide above"),
        }
    }

    /// Both columns of ids, emptied and 64 bits wide.
    pub fn as_u64_mut(&mut self) -> (&mut Vec<u64>, &mut Vec<u64>) {
        if !matches!(self.ends, Endpoints::U64 { .. }) {
            self.ends = Endpoints::U64 { src: Vec::new(), dst: Vec::new() };
        }
        self.clear();
        match &mut self.ends {
            Endpoints::U64 { src, dst } => (src, dst),
            Endpoints::U32 { .. } => unreachable!("the columns were made 64 bits wide above"),
        }
    }

    /// Widens the ids to 64 bits; the edges stay.
    pub fn widen(&mut self) {
        if let Endpoints::U32 { src, dst } = &self.ends {
            self.ends = Endpoints::U64 {
                src: src.iter().map(|&id| id.into()).collect(),
                dst: dst.iter().map(|&id| id.into()).collect(),
            };
        }
    }

    /// Adds the edges of `other`, at the wider of both widths. Both have weights or neither has.
    pub fn append(&mut self, other: &EdgeBatch) {
        if matches!(other.ends, Endpoints::U64 { .. }) {
            self.widen();
        }
        match (&mut self.ends, &other.ends) {
            (Endpoints::U32 { src, dst }, Endpoints::U32 { src: s, dst: d }) => {
                src.extend_from_slice(s);
                dst.extend_from_slice(d);
            }
            (Endpoints::U64 { src, dst }, Endpoints::U64 { src: s, dst: d }) => {
                src.extend_from_slice(s);
                dst.extend_from_slice(d);
            }
            (Endpoints::U64 { src, dst }, Endpoints::U32 { src: s, dst: d }) => {
                src.extend(s.iter().map(|&id| u64::from(id)));
                dst.extend(d.iter().map(|&id| u64::from(id)));
            }
            (Endpoints::U32 { .. }, Endpoints::U64 { .. }) => unreachable!("widened above"),
        }
        if let (Some(weights), Some(more)) = (&mut self.weights, &other.weights) {
            weights.extend_from_slice(more);
        }
    }

    /// The ends of each edge, 64 bits wide: for tests and small inputs.
    pub fn pairs(&self) -> Vec<(u64, u64)> {
        match &self.ends {
            Endpoints::U32 { src, dst } => {
                src.iter().zip(dst).map(|(&s, &d)| (s.into(), d.into())).collect()
            }
            Endpoints::U64 { src, dst } => src.iter().copied().zip(dst.iter().copied()).collect(),
        }
    }
}

/// A width of ids, over which parsers and generators are generic.
pub(crate) trait VertexId: Copy + Default + Send + Sync + 'static {
    /// The largest id of this width.
    const MAX: u64;

    /// The id; the caller has checked that it is at most [`MAX`](Self::MAX).
    fn from_u64(id: u64) -> Self;

    /// Both columns of `batch`, emptied and of this width.
    fn columns(batch: &mut EdgeBatch) -> (&mut Vec<Self>, &mut Vec<Self>);

    /// Both columns of `batch`, of `edges` elements, whose values may be old ones.
    fn resized_columns(batch: &mut EdgeBatch, edges: usize) -> (&mut [Self], &mut [Self]);
}

impl VertexId for u32 {
    const MAX: u64 = u32::MAX as u64;

    #[inline]
    fn from_u64(id: u64) -> Self {
        id as u32
    }

    fn columns(batch: &mut EdgeBatch) -> (&mut Vec<Self>, &mut Vec<Self>) {
        batch.as_u32_mut()
    }

    fn resized_columns(batch: &mut EdgeBatch, edges: usize) -> (&mut [Self], &mut [Self]) {
        if !matches!(batch.ends, Endpoints::U32 { .. }) {
            batch.ends = Endpoints::U32 { src: Vec::new(), dst: Vec::new() };
        }
        let Endpoints::U32 { src, dst } = &mut batch.ends else { unreachable!("made so above") };
        src.resize(edges, 0);
        dst.resize(edges, 0);
        (src, dst)
    }
}

impl VertexId for u64 {
    const MAX: u64 = u64::MAX;

    #[inline]
    fn from_u64(id: u64) -> Self {
        id
    }

    fn columns(batch: &mut EdgeBatch) -> (&mut Vec<Self>, &mut Vec<Self>) {
        batch.as_u64_mut()
    }

    fn resized_columns(batch: &mut EdgeBatch, edges: usize) -> (&mut [Self], &mut [Self]) {
        if !matches!(batch.ends, Endpoints::U64 { .. }) {
            batch.ends = Endpoints::U64 { src: Vec::new(), dst: Vec::new() };
        }
        let Endpoints::U64 { src, dst } = &mut batch.ends else { unreachable!("made so above") };
        src.resize(edges, 0);
        dst.resize(edges, 0);
        (src, dst)
    }
}
