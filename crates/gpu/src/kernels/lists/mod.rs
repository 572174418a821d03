//! Kernels over neighbour lists that are whole in device memory.

mod balls;
mod cores;
mod greedy;
mod labels;
mod order;
mod pairs;
mod paths;
mod queue;
mod triangles;

use std::sync::Arc;

use tiergraph_core::Result;

use super::{LANES, Put, Source, TYPES};
use crate::shared::shared;
use crate::{DeviceBuf, DevicePtr, Grid, Kernel, Stream};

pub use balls::{BallKernels, BallState};
pub use cores::CoreKernels;
pub use greedy::{Choice, GreedyKernels};
pub use labels::LabelKernels;
pub use order::{Kept, ListKernels};
pub use pairs::PairKernels;
pub use paths::PathKernels;
pub use triangles::{Closed, TriangleKernels};

const LISTS: &str = include_str!("lists.cuh");
const THREADS: u32 = 256;

shared! {
    struct ListsArguments as "Lists" {
        starts: DevicePtr<u32>,
        ends: DevicePtr<u32>,
        targets: DevicePtr<u32>,
        vertices: u32,
        reserved: u32,
    }
}

/// A grid of as many blocks as run at once, and no more than `most`.
fn resident_grid(kernel: &Kernel, most: u32) -> Result<Grid> {
    Ok(Grid { blocks: kernel.resident_blocks(THREADS)?.min(most), threads: THREADS })
}

/// Blocks in which each of so many vertices has a warp.
fn warp_blocks(vertices: u32) -> u32 {
    vertices.div_ceil(THREADS / LANES as u32)
}

/// Neighbour lists in device memory; clones share them. But for labels, balls and paths, they ascend and have each
/// neighbour once.
#[derive(Debug, Clone)]
pub struct DeviceLists {
    starts: Arc<DeviceBuf<u32>>,
    ends: Arc<DeviceBuf<u32>>,
    targets: Arc<DeviceBuf<u32>>,
}

impl DeviceLists {
    /// Copies lists to the device of `stream`: where each begins and ends, and the neighbours.
    ///
    /// # Errors
    /// No memory, any error of the driver.
    ///
    /// # Panics
    /// If a list has a begin and no end.
    pub fn upload(stream: &Stream, starts: &[u32], ends: &[u32], targets: &[u32]) -> Result<Self> {
        assert_eq!(starts.len(), ends.len(), "lists that end");
        Ok(Self {
            starts: Arc::new(stream.uploaded(starts)?),
            ends: Arc::new(stream.uploaded(ends)?),
            targets: Arc::new(stream.uploaded(targets)?),
        })
    }

    /// Lists without neighbours that have room up to where the next begins, or all end: [`put`](Self::put) fills them.
    ///
    /// # Errors
    /// No memory, any error of the driver.
    pub fn with_room(stream: &Stream, starts: &[u32], room: u32) -> Result<Self> {
        Ok(Self {
            starts: Arc::new(stream.uploaded(starts)?),
            ends: Arc::new(stream.uploaded(starts)?),
            targets: Arc::new(DeviceBuf::new(stream.device(), room as usize)?),
        })
    }

    /// The program that puts arcs into lists with room, in the `ways` that it names.
    pub fn put(&self, ways: u32) -> Put {
        let (ends, targets) = (self.ends.ptr(), self.targets.ptr());
        let (vertices, room) = (self.vertices() as u32, self.targets.len() as u32);
        Put { ends, targets, vertices, room, ways }
    }

    /// The number of lists.
    pub fn vertices(&self) -> usize {
        self.starts.len()
    }

    /// Bytes of device memory that they take.
    pub fn bytes(&self) -> u64 {
        (self.starts.bytes() + self.ends.bytes() + self.targets.bytes()) as u64
    }

    fn arguments(&self) -> ListsArguments {
        ListsArguments {
            starts: self.starts.ptr(),
            ends: self.ends.ptr(),
            targets: self.targets.ptr(),
            vertices: self.vertices() as u32,
            reserved: 0,
        }
    }
}

fn source_of(name: &str, text: &str) -> Source {
    source_with(name, &[text])
}

/// Kernels of several texts, one after the other.
fn source_with(name: &str, texts: &[&str]) -> Source {
    let all: Vec<&str> = [TYPES, LISTS].iter().chain(texts).copied().collect();
    Source::new(name, &all).sharing::<ListsArguments>()
}

pub(super) fn sources() -> [Source; 8] {
    [
        balls::source(),
        cores::source(),
        greedy::source(),
        labels::source(),
        order::source(),
        pairs::source(),
        paths::source(),
        triangles::source(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vertex of more neighbours than one side says, and not more than the other, would be left out.
    #[test]
    fn sources_and_launches_agree_on_what_is_few() {
        for (text, name, few) in [
            (include_str!("labels.cu"), "FEW", LabelKernels::FEW),
            (include_str!("balls.cu"), "SHORT", BallKernels::SHORT),
            (include_str!("order.cu"), "SHORT", ListKernels::SHORT),
        ] {
            assert!(text.contains(&format!("static const u32 {name} = {few};")), "{name}");
        }
    }
}
