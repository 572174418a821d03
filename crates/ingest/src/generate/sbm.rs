//! A stochastic block model: communities with more edges inside than between them.
//!
//! P. Holland, K. Laskey, S. Leinhardt, "Stochastic blockmodels: first steps" (1983), in its planted
//! form with communities of one size, as a stream: an edge starts at a vertex drawn evenly and ends,
//! with probability `inside`, at another one of its community, else at one of another community. The
//! community of vertex v is v mod k, so that ids have no locality and labels need no file.

use tiergraph_core::{Error, ErrorKind, Result};

use super::hash::Counter;
use super::model::Model;

/// The planted block model.
#[derive(Debug, Clone)]
pub struct BlockModel {
    vertices: u64,
    communities: u64,
    mean_degree: f64,
    inside: f64,
    seed: u64,
    words: Counter,
}

impl BlockModel {
    /// A model of `vertices` × `mean_degree` / 2 edges, of which a share of `inside` stay inside one of
    /// the communities.
    ///
    /// # Errors
    /// An input error where there are not two vertices to every community, the mean degree is
    /// negative, or `inside` is not a probability, or not 1 with one community.
    pub fn new(
        vertices: u64,
        communities: u64,
        mean_degree: f64,
        inside: f64,
        seed: u64,
    ) -> Result<Self> {
        let refuse = |expected: &str, got: String| {
            Err(Error::new(ErrorKind::Input, "generate a block model").expected(expected).got(got))
        };
        if communities == 0 || vertices / 2 < communities {
            let got = format!("{vertices} vertices and {communities} communities");
            return refuse("2 vertices or more in every community", got);
        }
        if !(mean_degree.is_finite() && mean_degree >= 0.0) {
            return refuse("a mean degree of 0 or more", format!("{mean_degree}"));
        }
        if !(0.0..=1.0).contains(&inside) {
            return refuse("a probability of edges inside a community", format!("{inside}"));
        }
        if communities == 1 && inside < 1.0 {
            return refuse("all edges inside the only community", format!("{inside}"));
        }
        let words = Counter::new(seed, 0x7362_6d00);
        Ok(Self { vertices, communities, mean_degree, inside, seed, words })
    }

    /// The community of a vertex, from 0.
    #[inline]
    pub fn community(&self, vertex: u64) -> u64 {
        vertex % self.communities
    }
}

impl Model for BlockModel {
    fn describe(&self) -> String {
        format!(
            "block-model(vertices={}, communities={}, mean_degree={}, inside={}, seed={})",
            self.vertices, self.communities, self.mean_degree, self.inside, self.seed
        )
    }

    fn vertices(&self) -> u64 {
        self.vertices
    }

    fn edges(&self) -> u64 {
        (self.vertices as f64 * self.mean_degree / 2.0).round() as u64
    }

    #[inline]
    fn edge(&self, number: u64) -> (u64, u64) {
        let at = number.wrapping_mul(3);
        let (n, k) = (self.vertices, self.communities);
        let src = self.words.below(at, n);
        let community = src % k;
        let members = (n - community).div_ceil(k);
        let coin = (self.words.word(at.wrapping_add(1)) >> 11) as f64 / (1u64 << 53) as f64;
        let at = at.wrapping_add(2);
        if coin < self.inside {
            // One of the community's other members.
            let member = self.words.below(at, members - 1);
            return (src, community + k * (member + u64::from(member >= src / k)));
        }
        // One of the others: every k ids have k − 1 of them.
        let other = self.words.below(at, n - members);
        let (row, column) = (other / (k - 1), other % (k - 1));
        (src, row * k + column + u64::from(column >= community))
    }
}
