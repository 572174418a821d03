//! Models of random graphs, and sources of their edges.

use tiergraph_core::{Result, threads};
use tiergraph_kernels::{Work, widest};

use super::hash::{Counter, Word};
use crate::source::{EdgeBatch, EdgeSource, SizeHint, VertexId};

/// Edges that are made together.
pub const BLOCK: usize = 128;

/// A random graph whose every edge is a function of its number.
pub trait Model: Send + Sync {
    /// The model and its parameters, for provenance.
    fn describe(&self) -> String;

    /// The number of vertices; ids are below it.
    fn vertices(&self) -> u64;

    /// The number of edges.
    fn edges(&self) -> u64;

    /// The ends (source, target) of edge number `number`.
    fn edge(&self, number: u64) -> (u64, u64);

    /// The ends of the [`BLOCK`] edges from number `first` on, of a type that has all ids. A model whose edges
    /// take many steps does a step of all edges at once, which takes instructions that work on several.
    #[inline(always)]
    fn block<W: Word>(&self, first: u64, src: &mut [W; BLOCK], dst: &mut [W; BLOCK]) {
        for (number, (src, dst)) in (first..).zip(src.iter_mut().zip(dst)) {
            let (from, to) = self.edge(number);
            (*src, *dst) = (W::low(from), W::low(to));
        }
    }
}

/// The distribution of random weights of generated edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightRange {
    /// Uniform in [0, 1).
    Unit,
    /// Uniform among the integers 1 to 255, as in the GAP benchmark.
    Byte,
}

/// Options of a generator. Only `weights` changes the edges that it hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratorOptions {
    /// The distribution of weights; `None` for edges without weights.
    pub weights: Option<WeightRange>,
    /// The number of threads that generate a batch.
    pub threads: usize,
    /// The number of edges in a batch.
    pub batch_edges: usize,
}

impl Default for GeneratorOptions {
    fn default() -> Self {
        Self { weights: None, threads: 2, batch_edges: 1 << 17 }
    }
}

/// A source of the edges of a [`Model`].
pub struct Generated<M> {
    model: M,
    weight_words: Counter,
    options: GeneratorOptions,
    next: u64,
}

impl<M: Model> Generated<M> {
    /// A source of the model's edges; `seed` chooses the weights.
    pub fn new(model: M, seed: u64, options: GeneratorOptions) -> Self {
        Self { model, weight_words: Counter::new(seed, 0x7765_6967), options, next: 0 }
    }

    /// The model that the edges are of.
    pub fn model(&self) -> &M {
        &self.model
    }

    fn fill_ends<I: VertexId + Word>(
        &self,
        first: u64,
        edges: usize,
        batch: &mut EdgeBatch,
    ) -> Result<()> {
        let (src, dst) = I::resized_columns(batch, edges);
        let part = edges.div_ceil(self.options.threads.max(1)).max(1);
        let model = &self.model;
        std::thread::scope(|scope| {
            let mut jobs =
                (first..).step_by(part).zip(src.chunks_mut(part).zip(dst.chunks_mut(part)));
            let own = jobs.next();
            for (first, (src, dst)) in jobs {
                threads::start_in(scope, "generate", move || fill(model, first, src, dst))?;
            }
            if let Some((first, (src, dst))) = own {
                fill(model, first, src, dst);
            }
            Ok(())
        })
    }

    fn weight(&self, range: WeightRange, number: u64) -> f64 {
        match range {
            // The 53 bits of a double's mantissa.
            WeightRange::Unit => {
                (self.weight_words.word(number) >> 11) as f64 / (1u64 << 53) as f64
            }
            WeightRange::Byte => (1 + self.weight_words.below(number, 255)) as f64,
        }
    }
}

fn fill<I: VertexId + Word, M: Model>(model: &M, first: u64, src: &mut [I], dst: &mut [I]) {
    widest(Fill { model, first, src, dst });
}

/// The edges of a model from number `first` on.
struct Fill<'a, M, I> {
    model: &'a M,
    first: u64,
    src: &'a mut [I],
    dst: &'a mut [I],
}

impl<M: Model, I: Word> Work for Fill<'_, M, I> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (mut from, mut to) = ([I::default(); BLOCK], [I::default(); BLOCK]);
        let blocks = self.src.chunks_mut(BLOCK).zip(self.dst.chunks_mut(BLOCK));
        for (first, (src, dst)) in (self.first..).step_by(BLOCK).zip(blocks) {
            // Those beyond the last edge are left out.
            self.model.block(first, &mut from, &mut to);
            src.copy_from_slice(&from[..src.len()]);
            dst.copy_from_slice(&to[..dst.len()]);
        }
    }
}

impl<M: Model> EdgeSource for Generated<M> {
    fn describe(&self) -> String {
        self.model.describe()
    }

    fn synthetic(&self) -> bool {
        true
    }

    fn size_hint(&self) -> SizeHint {
        let (edges, vertices) = (Some(self.model.edges()), Some(self.model.vertices()));
        SizeHint { edges, vertices, bytes: None }
    }

    fn weighted(&self) -> bool {
        self.options.weights.is_some()
    }

    fn restart(&mut self) -> Result<()> {
        self.next = 0;
        Ok(())
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        let left = self.model.edges() - self.next;
        let edges = left.min(self.options.batch_edges.max(1) as u64) as usize;
        let first = self.next;
        if self.model.vertices() <= 1 << 32 {
            self.fill_ends::<u32>(first, edges, batch)?;
        } else {
            self.fill_ends::<u64>(first, edges, batch)?;
        }
        batch.weights = self.options.weights.map(|range| {
            let mut weights = batch.weights.take().unwrap_or_default();
            weights.clear();
            weights.extend((first..first + edges as u64).map(|n| self.weight(range, n)));
            weights
        });
        self.next += edges as u64;
        Ok(edges > 0)
    }
}
