//! What a graph is made of: triangles, cores, communities, components, sets and colours. Over lists of neighbours.

mod communities;
mod cores;
mod greedy;
mod intersect;
mod label_propagation;
mod mutual;
mod one_core;
mod similarity;
mod strong;
mod triangles;

pub use communities::{Communities, Found as FoundCommunities, Method, Objective, communities};
pub use cores::core_numbers;
pub(crate) use greedy::{color_priority, priorities, set_priority};
pub use greedy::{coloring, independent_set};
pub use label_propagation::label_propagation;
pub(crate) use mutual::mutual_of;
pub use mutual::{Mutual, mutual};
pub use one_core::k_core;
pub use similarity::{InCommon, Weighed, in_common};
pub(crate) use similarity::{Values, check as check_pairs};
pub use strong::scc;
pub use triangles::{Triangles, clustering, triangles};
pub(crate) use triangles::{WedgesClosed, clustering_of, triangles_of};
