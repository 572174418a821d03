//! A run's timeline: spans on worker threads and on devices, written as Chrome trace events (opens
//! in Perfetto).

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use crate::{Error, Result};

/// The part of the machine that a span keeps busy: a process of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Track {
    /// A worker's thread.
    Worker,
    /// Reads in flight from storage to host memory.
    Storage,
    /// Copies over the link from host memory to a device.
    Link,
    /// Reads in flight from storage to a device, past this process's memory.
    Direct,
    /// A device's processors.
    Device,
}

impl Track {
    const ALL: [Self; 5] = [Self::Worker, Self::Storage, Self::Link, Self::Direct, Self::Device];

    fn name(self) -> &'static str {
        match self {
            Self::Worker => "workers",
            Self::Storage => "storage to host",
            Self::Link => "host to device",
            Self::Direct => "storage to device",
            Self::Device => "processing on the device",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Span {
    track: Track,
    name: &'static str,
    category: &'static str,
    worker: u32,
    begin: Instant,
    end: Instant,
    /// Bytes that were read, of a read.
    bytes: Option<u64>,
}

/// A recorder of spans: on, it collects them; off, it costs one branch. Clones share the spans.
#[derive(Debug, Clone)]
pub struct Trace {
    start: Instant,
    spans: Option<Arc<Mutex<Vec<Span>>>>,
}

impl Trace {
    /// A trace that records nothing.
    pub fn off() -> Self {
        Self { start: Instant::now(), spans: None }
    }

    /// A trace that records every span.
    pub fn on() -> Self {
        Self { start: Instant::now(), spans: Some(Arc::default()) }
    }

    /// Whether both traces are off, or are clones of one another.
    pub fn is(&self, other: &Self) -> bool {
        match (&self.spans, &other.spans) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }

    /// Whether spans are recorded.
    pub fn is_on(&self) -> bool {
        self.spans.is_some()
    }

    /// Records the span `name` (of category `cat`: `compute`, `wait`, `stage`) on worker thread `tid`,
    /// from `begin` until now.
    pub fn span(&self, cat: &'static str, name: &'static str, tid: u32, begin: Instant) {
        if let Some(mut spans) = self.lock() {
            let (track, end) = (Track::Worker, Instant::now());
            spans.push(Span { track, name, category: cat, worker: tid, begin, end, bytes: None });
        }
    }

    /// Records the span `name`: work that `worker` had under way on `track` between two times.
    pub fn record(&self, track: Track, name: &'static str, worker: u32, during: Range<Instant>) {
        self.push(track, name, worker, during, None);
    }

    /// Records a read of `bytes` that `worker` had in flight on `track` between two times.
    pub fn read(&self, track: Track, worker: u32, during: Range<Instant>, bytes: u64) {
        self.push(track, "read", worker, during, Some(bytes));
    }

    fn push(
        &self,
        track: Track,
        name: &'static str,
        worker: u32,
        during: Range<Instant>,
        bytes: Option<u64>,
    ) {
        let Range { start: begin, end } = during;
        if let Some(mut spans) = self.lock() {
            spans.push(Span { track, name, category: track.name(), worker, begin, end, bytes });
        }
    }

    /// Seconds since `begin` in which a span of `track` was under way; `None` if the trace is off.
    pub fn busy_seconds(&self, track: Track, begin: Instant) -> Option<f64> {
        let spans = self.lock()?;
        let mut of_track: Vec<_> = spans
            .iter()
            .filter(|s| s.track == track && s.end > begin)
            .map(|s| (s.begin.max(begin), s.end))
            .collect();
        of_track.sort_unstable();
        let (mut busy, mut until) = (0.0, begin);
        for (from, to) in of_track {
            busy += to.saturating_duration_since(from.max(until)).as_secs_f64();
            until = until.max(to);
        }
        Some(busy)
    }

    /// Writes the recorded spans to `path` as a Chrome trace file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut events = Vec::new();
        if let Some(mut spans) = self.lock() {
            spans.sort_unstable_by_key(|span| (span.track, span.worker, span.begin));
            for track in Track::ALL {
                let name = json!({ "name": track.name() });
                events.push(
                    json!({ "name": "process_name", "ph": "M", "pid": track as u32, "args": name }),
                );
            }
            events.extend(
                spans
                    .chunk_by(|a, b| (a.track, a.worker) == (b.track, b.worker))
                    .flat_map(|of_worker| Lanes::default().events(of_worker, self.start)),
            );
        }
        let json = json!({ "traceEvents": events, "displayTimeUnit": "ms" });
        std::fs::write(path, json.to_string())
            .map_err(|e| Error::io("write the trace to", path.display(), e))
    }

    fn lock(&self) -> Option<MutexGuard<'_, Vec<Span>>> {
        Some(self.spans.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Rows of the timeline: spans of one row may not overlap, and reads in flight do.
#[derive(Default)]
struct Lanes {
    free_from: Vec<Instant>,
}

impl Lanes {
    /// Rows that a worker may have.
    const EACH: u32 = 1000;

    /// The events of one worker's spans on one track, in the order of their begins.
    fn events(&mut self, spans: &[Span], start: Instant) -> Vec<Value> {
        let us = |i: Instant| i.saturating_duration_since(start).as_secs_f64() * 1e6;
        let event = |span: &Span| {
            let row = match span.track {
                Track::Worker => span.worker,
                _ => span.worker * Self::EACH + self.lane(span),
            };
            let mut event = json!({
                "name": span.name, "cat": span.category, "ph": "X", "pid": span.track as u32,
                "tid": row, "ts": us(span.begin), "dur": us(span.end) - us(span.begin),
            });
            if let Some(bytes) = span.bytes {
                event["args"] = json!({ "bytes": bytes });
            }
            event
        };
        spans.iter().map(event).collect()
    }

    /// The first row that is free when the span begins.
    fn lane(&mut self, span: &Span) -> u32 {
        let free = self.free_from.iter().position(|&from| from <= span.begin);
        let lane = free.unwrap_or(self.free_from.len());
        self.free_from.resize(self.free_from.len().max(lane + 1), span.end);
        self.free_from[lane] = span.end;
        lane as u32
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(trace: &Trace, ms: u64) -> Instant {
        trace.start + Duration::from_millis(ms)
    }

    #[test]
    fn overlapping_spans_count_once_and_have_rows_of_their_own() {
        let trace = Trace::on();
        for (begin, end) in [(0, 20), (10, 30), (40, 50)] {
            trace.read(Track::Storage, 0, at(&trace, begin)..at(&trace, end), 4096);
        }
        let busy = |ms| trace.busy_seconds(Track::Storage, at(&trace, ms)).unwrap_or_default();
        assert!((busy(0) - 0.04).abs() < 1e-9);
        assert!((busy(25) - 0.015).abs() < 1e-9);
        assert_eq!(trace.busy_seconds(Track::Link, trace.start), Some(0.0));
        let spans = trace.lock().map(|s| s.clone()).unwrap_or_default();
        let events = Lanes::default().events(&spans, trace.start);
        let rows: Vec<_> = events.iter().map(|event| event["tid"].as_u64()).collect();
        assert_eq!(rows, [Some(0), Some(1), Some(0)]);
        assert!(events.iter().all(|event| event["args"]["bytes"] == 4096));
    }

    #[test]
    fn a_trace_that_is_off_has_nothing() {
        let trace = Trace::off();
        trace.span("wait", "read", 0, trace.start);
        assert_eq!(trace.busy_seconds(Track::Worker, trace.start), None);
    }
}
