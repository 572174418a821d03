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
    under_way: VecDeque<(Vec<u32>, Copying<Vec<AlignedBuf>>)>,
    /// Events that can be recorded again.
    events: Vec<Event>,
}

impl Copies {
    /// Starts one of blocks' buffers on `stream`: `size` bytes of each.
    pub fn start(
        &mut self,
        (stream, timeline): (&Stream, &mut Timeline),
        (to, at): (&mut DeviceBuf<u8>, usize),
        (from, size): (impl IntoIterator<Item = (u32, AlignedBuf)>, usize),
    ) -> Result<()> {
        let event = match self.events.pop() {
            Some(event) => event,
            None => Event::new(stream.device())?,
        };
        let (blocks, buffers): (Vec<_>, _) = from.into_iter().unzip();
        let copy = || stream.start_upload(to, at, (buffers, size), event);
        let copying = timeline.span((Track::Link, "copy"), stream, copy)?;
        self.under_way.push_back((blocks, copying));
        Ok(())
    }

    /// Whether all that were started have ended.
    pub fn are_done(&self) -> Result<bool> {
        self.under_way.back().map_or(Ok(true), |(_, latest)| latest.is_done())
    }

    /// The blocks and buffers of copies that ended; with `wait`, at least the oldest.
    pub fn give_back(&mut self, to: &mut Vec<(u32, AlignedBuf)>, wait: bool) -> Result<()> {
        let mut wait = wait;
        while let Some((blocks, oldest)) = self.under_way.pop_front() {
            if !wait && !oldest.is_done()? {
                self.under_way.push_front((blocks, oldest));
                break;
            }
            let (buffers, event) = oldest.finish()?;
            to.extend(blocks.into_iter().zip(buffers));
            self.events.extend(event);
            wait = false;
        }
        Ok(())
    }

    /// The blocks and buffers of all copies, when they have ended.
    pub fn finish(&mut self, to: &mut Vec<(u32, AlignedBuf)>) -> Result<()> {
        while !self.under_way.is_empty() {
            self.give_back(to, true)?;
        }
        Ok(())
    }
}
