//! G(n, m): edges between vertices drawn evenly, with repetition and without self-loops.
//!
//! P. Erdős and A. Rényi, "On random graphs" (1959), but with repetition, as a stream of edges that
//! never repeats would have to remember them; at mean degree d a share of about d / n repeats.

use tiergraph_core::{Error, ErrorKind, Result};

use super::hash::Counter;
use super::model::Model;

/// The uniform model G(n, m) with repetition.
#[derive(Debug, Clone)]
pub struct Uniform {
    vertices: u64,
    edges: u64,
    seed: u64,
    words: Counter,
}

impl Uniform {
    /// A model of `vertices` vertices and `edges` edges.
    ///
    /// # Errors
    /// An input error where there are fewer than two vertices to join.
    pub fn new(vertices: u64, edges: u64, seed: u64) -> Result<Self> {
        if vertices < 2 && edges > 0 {
            return Err(Error::new(ErrorKind::Input, "generate a uniform graph")
                .expected("2 vertices or more")
                .got(vertices));
        }
        Ok(Self { vertices, edges, seed, words: Counter::new(seed, 0x756e_6966) })
    }
}

impl Model for Uniform {
    fn describe(&self) -> String {
        format!("uniform(vertices={}, edges={}, seed={})", self.vertices, self.edges, self.seed)
    }

    fn vertices(&self) -> u64 {
        self.vertices
    }

    fn edges(&self) -> u64 {
        self.edges
    }

    #[inline]
    fn edge(&self, number: u64) -> (u64, u64) {
        let at = number.wrapping_mul(2);
        let src = self.words.below(at, self.vertices);
        // One of the other vertices.
        let dst = self.words.below(at.wrapping_add(1), self.vertices - 1);
        (src, dst + u64::from(dst >= src))
    }
}
