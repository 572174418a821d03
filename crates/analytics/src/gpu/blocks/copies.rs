//! Blocks in host memory that are being copied to the device, the oldest first.

use std::collections::VecDeque;

use tiergraph_core::Result;
use tiergraph_core::trace::Track;
use tiergraph_gpu::{Copying, DeviceBuf, Event, Stream};
use tiergraph_io::pipeline::Block;

use crate::gpu::timeline::Timeline;

/// Copies of one worker.
#[derive(Default)]
pub(in crate::gpu) struct Copies {
    under_way: VecDeque<Copying<Vec<Block>>>,
    /// Events that can be recorded again.
    events: Vec<Event>,
}

impl Copies {
    /// Starts copying the first `size` bytes of each of `blocks` on `stream`, to byte `at` of `to` and
    /// behind it.
    pub fn start(
        &mut self,
        (stream, timeline): (&Stream, &mut Timeline),
        (to, at): (&DeviceBuf<u8>, usize),
        (blocks, size): (Vec<Block>, usize),
    ) -> Result<()> {
        let event = match self.events.pop() {
            Some(event) => event,
            None => Event::new(stream.device())?,
        };
        let copy = || stream.start_upload(blocks, size, to, at, event);
        let copying = timeline.span((Track::Link, "copy"), stream, copy)?;
        self.under_way.push_back(copying);
        Ok(())
    }

    /// Whether all that were started have ended.
    pub fn are_done(&self) -> Result<bool> {
        self.under_way.back().map_or(Ok(true), Copying::is_done)
    }

    /// The blocks of copies that ended; with `wait`, at least those of the oldest.
    pub fn give_back(&mut self, back: &mut Vec<Block>, wait: bool) -> Result<()> {
        let mut wait = wait;
        while let Some(oldest) = self.under_way.pop_front() {
            if !wait && !oldest.is_done()? {
                self.under_way.push_front(oldest);
                break;
            }
            let (blocks, event) = oldest.finish()?;
            back.extend(blocks);
            self.events.extend(event);
            wait = false;
        }
        Ok(())
    }

    /// The blocks of all copies, when they have ended.
    pub fn finish(&mut self, back: &mut Vec<Block>) -> Result<()> {
        while !self.under_way.is_empty() {
            self.give_back(back, true)?;
        }
        Ok(())
    }
}
