//! Timelines: when a device did what, for a run's trace. Pairs of events on its streams are read when
//! the pass is over, so that nothing waits for them. Without a trace, no event is made.

use std::time::Instant;

use tiergraph_core::Result;
use tiergraph_core::trace::{Trace, Track};
use tiergraph_gpu::{Event, Stream};

/// A moment on both the host's and the device's clock, to some microseconds.
pub(super) struct Origin {
    event: Event,
    at: Instant,
}

impl Origin {
    /// The moment now, on a stream with nothing to do; `None` if `trace` is off.
    pub fn now(trace: &Trace, stream: &Stream) -> Result<Option<Self>> {
        if !trace.is_on() {
            return Ok(None);
        }
        let (event, before) = (Event::timed(stream.device())?, Instant::now());
        event.record(stream)?;
        event.synchronize()?;
        Ok(Some(Self { event, at: before + before.elapsed() / 2 }))
    }

    /// When `event` happened, before this moment or after it.
    fn at(&self, event: &Event) -> Result<Instant> {
        // Of the two times between them, one is none.
        Ok(self.at + event.since(&self.event)? - self.event.since(event)?)
    }
}

/// The work that one worker submitted to its streams, and when each piece of it began and ended.
pub(super) struct Timeline {
    trace: Trace,
    worker: u32,
    spans: Vec<Span>,
    /// Events that can be recorded again.
    spare: Vec<Event>,
}

struct Span {
    track: Track,
    name: &'static str,
    begin: Event,
    end: Event,
}

impl Timeline {
    pub fn new(trace: &Trace, worker: usize) -> Self {
        let (spans, spare) = (Vec::new(), Vec::new());
        Self { trace: trace.clone(), worker: worker as u32, spans, spare }
    }

    /// Calls `work`, and notes what it submits to `stream` as a span called `name` on `track`.
    pub fn span<T>(
        &mut self,
        track: Track,
        name: &'static str,
        stream: &Stream,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if !self.trace.is_on() {
            return work();
        }
        let begin = self.mark(stream)?;
        let done = work()?;
        let end = self.mark(stream)?;
        self.spans.push(Span { track, name, begin, end });
        Ok(done)
    }

    fn mark(&mut self, stream: &Stream) -> Result<Event> {
        let event = match self.spare.pop() {
            Some(event) => event,
            None => Event::timed(stream.device())?,
        };
        event.record(stream)?;
        Ok(event)
    }

    /// Moves the spans that have ended to the trace and keeps others; does nothing without `origin`.
    pub fn record(&mut self, origin: Option<&Origin>) -> Result<()> {
        let Some(origin) = origin else { return Ok(()) };
        for span in std::mem::take(&mut self.spans) {
            if !span.end.happened()? {
                self.spans.push(span);
                continue;
            }
            let Span { track, name, begin, end } = span;
            self.trace.record(track, name, self.worker, origin.at(&begin)?..origin.at(&end)?);
            self.spare.extend([begin, end]);
        }
        Ok(())
    }
}
