//! Launches of `labels.cu`.

use tiergraph_core::Result;

use super::{DeviceLists, Source, resident_grid, source_of, warp_blocks};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Kernel, Stream};

shared! {
    struct LabelsArguments as "Labels" {
        before: DevicePtr<u32>,
        after: DevicePtr<u32>,
        changed: DevicePtr<u32>,
    }
}

/// The compiled kernels that propagate labels.
#[derive(Debug, Clone)]
pub struct LabelKernels {
    few: Kernel,
    many: Kernel,
}

pub(super) fn source() -> Source {
    source_of("labels", include_str!("labels.cu")).sharing::<LabelsArguments>()
}

impl LabelKernels {
    /// Vertices with more neighbours than this are [`propagate`](Self::propagate)'s `many`.
    pub const FEW: u32 = 32;

    /// Compiles the kernels.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self { few: module.kernel("label_few")?, many: module.kernel("label_many")? })
    }

    /// Sets `after` to the label that most of each vertex's neighbours have in `before`; returns how many
    /// labels changed. `many` are all vertices of more than [`FEW`](Self::FEW) neighbours.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are more or fewer labels than lists.
    pub fn propagate(
        &self,
        stream: &Stream,
        lists: &DeviceLists,
        before: &DeviceBuf<u32>,
        after: &mut DeviceBuf<u32>,
        many: &DeviceBuf<u32>,
    ) -> Result<u32> {
        assert_eq!(before.len().min(after.len()), lists.vertices(), "a label a list");
        let changed = stream.uploaded(&[0u32])?;
        let labels =
            LabelsArguments { before: before.ptr(), after: after.ptr(), changed: changed.ptr() };
        let (lists, count) = (lists.arguments(), many.len() as u32);
        let warps = warp_blocks(lists.vertices);
        // SAFETY: `Lists` and `Labels` of the source; `many` are vertices, and neighbours are.
        unsafe {
            self.many.launch(
                stream,
                resident_grid(&self.many, count)?,
                &[&lists, &labels, &many.ptr(), &count],
            )?;
            self.few.launch(stream, resident_grid(&self.few, warps)?, &[&lists, &labels])?;
        }
        Ok(stream.download(&changed, 1)?[0])
    }
}
