//! Launches of `pairs.cu`.

use tiergraph_core::Result;

use super::{DeviceLists, Source, resident_grid, source_of, warp_blocks};
use crate::shared::shared;
use crate::{DeviceBuf, DevicePtr, Kernel, Stream};

shared! {
    struct PairsArguments as "Pairs" {
        ends: DevicePtr<u32>,
        values: DevicePtr<f64>,
        sums: DevicePtr<f64>,
        neighbors: DevicePtr<u32>,
        left: DevicePtr<u32>,
        counts: DevicePtr<u32>,
        count: u32,
        reserved: u32,
    }
}

pub(super) fn source() -> Source {
    source_of("pairs", include_str!("pairs.cu")).sharing::<PairsArguments>()
}

/// The compiled kernels that compare the lists of pairs of vertices, and memory for some pairs.
#[derive(Debug)]
pub struct PairKernels {
    compare: Kernel,
    compare_long: Kernel,
    ends: DeviceBuf<u32>,
    sums: DeviceBuf<f64>,
    neighbors: DeviceBuf<u32>,
    /// The pairs of two long lists.
    left: DeviceBuf<u32>,
    /// How many pairs were taken, and how many have two long lists.
    counts: DeviceBuf<u32>,
    /// What each vertex counts; `None` if each counts 1.
    values: Option<DeviceBuf<f64>>,
}

impl PairKernels {
    /// Bytes of device memory of a pair.
    pub const PAIR_BYTES: usize = 28;

    /// Kernels that compare up to `most` pairs at a time; as a common neighbour, each vertex counts its value, or 1.
    ///
    /// # Errors
    /// No compiler, no memory, any error of the driver.
    pub fn new(stream: &Stream, most: usize, values: Option<&[f64]>) -> Result<Self> {
        let device = stream.device();
        let module = source().compile(device)?;
        Ok(Self {
            compare: module.kernel("compare_pairs")?,
            compare_long: module.kernel("compare_long_pairs")?,
            ends: DeviceBuf::new(device, 2 * most)?,
            sums: DeviceBuf::new(device, most)?,
            neighbors: DeviceBuf::new(device, 2 * most)?,
            left: DeviceBuf::new(device, most)?,
            counts: DeviceBuf::new(device, 2)?,
            values: values.map(|values| stream.uploaded(values)).transpose()?,
        })
    }

    /// For each of `pairs`, the sum of the values of the neighbours that both have, and how many each has. Of lists
    /// that ascend and have each neighbour once.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are more pairs than were said, a pair of what has no list, or fewer values than lists.
    pub fn compare(
        &mut self,
        stream: &Stream,
        lists: &DeviceLists,
        pairs: &[[u32; 2]],
    ) -> Result<(Vec<f64>, Vec<[u32; 2]>)> {
        let (count, ends) = (pairs.len(), pairs.as_flattened());
        assert!(count <= self.sums.len(), "{count} pairs");
        assert!(ends.iter().all(|&vertex| (vertex as usize) < lists.vertices()), "vertices");
        assert!(self.values.as_ref().is_none_or(|values| values.len() >= lists.vertices()));
        stream.upload(&mut self.ends, ends)?;
        stream.fill_bytes(&mut self.counts, 0)?;
        let pairs = PairsArguments {
            ends: self.ends.ptr(),
            values: self.values.as_ref().map_or(DevicePtr::NULL, DeviceBuf::ptr),
            sums: self.sums.ptr(),
            neighbors: self.neighbors.ptr(),
            left: self.left.ptr(),
            counts: self.counts.ptr(),
            count: count as u32,
            reserved: 0,
        };
        let grid = resident_grid(&self.compare, warp_blocks(count as u32))?;
        let of_long = resident_grid(&self.compare_long, count as u32)?;
        let lists = lists.arguments();
        // SAFETY: `Lists` and `Pairs` of the source; lengths and vertices were checked.
        unsafe {
            self.compare.launch(stream, grid, &[&lists, &pairs])?;
            self.compare_long.launch(stream, of_long, &[&lists, &pairs])?;
        }
        let (sums, neighbors) =
            (stream.download(&self.sums, count)?, stream.download(&self.neighbors, 2 * count)?);
        Ok((sums, neighbors.as_chunks().0.to_vec()))
    }
}
