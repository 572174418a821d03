//! Host buffers that are being copied to the device, the oldest first.

use std::collections::VecDeque;

use tiergraph_core::Result;
use tiergraph_core::trace::Track;
use tiergraph_gpu::{Copying, DeviceBuf, Event, Stream};
use tiergraph_mem::AlignedBuf;

use super::timeline::Timeline;

/// Copies of one worker.
#[derive(Default)]
pub(super) struct Copies {
    under_way: VecDeque<Copying>,
    /// Events that can be recorded again.
    events: Vec<Event>,
}

impl Copies {
    /// Starts one on `stream`.
    pub fn start(
        &mut self,
        (stream, timeline): (&Stream, &mut Timeline),
        (to, at): (&mut DeviceBuf<u8>, usize),
        from: (AlignedBuf, usize),
    ) -> Result<()> {
        let event = match self.events.pop() {
            Some(event) => event,
            None => Event::new(stream.device())?,
        };
        let copying = timeline
            .span((Track::Link, "copy"), stream, || stream.start_upload(to, at, from, event))?;
        self.under_way.push_back(copying);
        Ok(())
    }

    /// The buffers of copies that ended; with `wait`, at least the oldest.
    pub fn give_back(&mut self, to: &mut Vec<AlignedBuf>, wait: bool) -> Result<()> {
        let mut wait = wait;
        while let Some(oldest) = self.under_way.pop_front() {
            if !wait && !oldest.is_done()? {
                self.under_way.push_front(oldest);
                break;
            }
            let (buffer, event) = oldest.finish()?;
            to.push(buffer);
            self.events.extend(event);
            wait = false;
        }
        Ok(())
    }
}
