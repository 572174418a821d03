//! Copies of blocks from host memory to the device that are under way.

use std::collections::VecDeque;

use tiergraph_core::Result;
use tiergraph_core::trace::Track;
use tiergraph_gpu::{Copying, DeviceBuf, Event, Stream};
use tiergraph_io::pipeline::Block;

use crate::gpu::timeline::Timeline;

/// The copies that one worker started.
#[derive(Default)]
pub(in crate::gpu) struct Copies {
    /// Copies that may not have ended, the oldest first.
    under_way: VecDeque<Copying<Vec<Block>>>,
    /// Events that can be recorded again.
    events: Vec<Event>,
}

/// A copy to start: blocks in host memory, and the place in device memory that they go to.
pub(in crate::gpu) struct BlockCopy<'a> {
    pub blocks: Vec<Block>,
    pub block_bytes: usize,
    /// The blocks lie one after the other in `to`, from its byte `at` on.
    pub to: &'a DeviceBuf<u8>,
    pub at: usize,
}

impl Copies {
    /// Starts a copy on `stream`.
    pub fn start(
        &mut self,
        copy: BlockCopy<'_>,
        stream: &Stream,
        timeline: &mut Timeline,
    ) -> Result<()> {
        let event = match self.events.pop() {
            Some(event) => event,
            None => Event::new(stream.device())?,
        };
        let BlockCopy { blocks, block_bytes, to, at } = copy;
        let upload = || stream.start_upload(blocks, block_bytes, to, at, event);
        let copying = timeline.span(Track::Link, "copy", stream, upload)?;
        self.under_way.push_back(copying);
        Ok(())
    }

    /// Whether every copy to the device that was started has ended.
    pub fn are_done(&self) -> Result<bool> {
        self.under_way.back().map_or(Ok(true), Copying::is_done)
    }

    /// Appends the blocks of copies that have ended to `back`; with `wait`, waits for the oldest copy.
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

    /// Waits for all copies and appends their blocks to `back`.
    pub fn finish(&mut self, back: &mut Vec<Block>) -> Result<()> {
        while !self.under_way.is_empty() {
            self.give_back(back, true)?;
        }
        Ok(())
    }
}
