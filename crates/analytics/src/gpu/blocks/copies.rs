//! Host buffers that are being copied to the device, the oldest first.

use std::collections::VecDeque;

use tiergraph_core::Result;
use tiergraph_core::trace::Track;
use tiergraph_gpu::{Copying, DeviceBuf, Event, Stream};
use tiergraph_mem::AlignedBuf;

use crate::gpu::timeline::Timeline;

/// Copies of one worker.
#[derive(Default)]
pub(in crate::gpu) struct Copies {
    under_way: VecDeque<(u32, Copying)>,
    /// Events that can be recorded again.
    events: Vec<Event>,
}

impl Copies {
    /// Starts one of a block's buffer on `stream`.
    pub fn start(
        &mut self,
        (stream, timeline): (&Stream, &mut Timeline),
        (to, at): (&mut DeviceBuf<u8>, usize),
        (block, from): (u32, (AlignedBuf, usize)),
    ) -> Result<()> {
        let event = match self.events.pop() {
            Some(event) => event,
            None => Event::new(stream.device())?,
        };
        let copying = timeline
            .span((Track::Link, "copy"), stream, || stream.start_upload(to, at, from, event))?;
        self.under_way.push_back((block, copying));
        Ok(())
    }

    /// The blocks and buffers of copies that ended; with `wait`, at least the oldest.
    pub fn give_back(&mut self, to: &mut Vec<(u32, AlignedBuf)>, wait: bool) -> Result<()> {
        let mut wait = wait;
        while let Some((block, oldest)) = self.under_way.pop_front() {
            if !wait && !oldest.is_done()? {
                self.under_way.push_front((block, oldest));
                break;
            }
            let (buffer, event) = oldest.finish()?;
            to.push((block, buffer));
            self.events.extend(event);
            wait = false;
        }
        Ok(())
    }
}
