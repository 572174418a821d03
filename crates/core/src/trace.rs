//! A run's timeline: spans on worker threads, written as Chrome trace events (opens in Perfetto).

use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use serde::Serialize;

use crate::{Error, Result};

/// One span, in microseconds since the trace began.
#[derive(Debug, Clone, Serialize)]
struct Event {
    name: &'static str,
    cat: &'static str,
    ph: &'static str,
    ts: f64,
    dur: f64,
    pid: u32,
    tid: u32,
}

/// Collects spans when it is on and costs one branch when it is off.
#[derive(Debug)]
pub struct Trace {
    start: Instant,
    events: Option<Mutex<Vec<Event>>>,
}

impl Trace {
    /// A trace that records nothing.
    pub fn off() -> Self {
        Self { start: Instant::now(), events: None }
    }

    /// A trace that records every span.
    pub fn on() -> Self {
        Self { start: Instant::now(), events: Some(Mutex::new(Vec::new())) }
    }

    /// Whether spans are recorded.
    pub fn is_on(&self) -> bool {
        self.events.is_some()
    }

    /// Records `name` (of category `cat`: `io`, `compute`, `wait`, `stage`) on thread `tid` from
    /// `begin` until now.
    pub fn span(&self, cat: &'static str, name: &'static str, tid: u32, begin: Instant) {
        let Some(events) = &self.events else { return };
        let us = |i: Instant| i.duration_since(self.start).as_secs_f64() * 1e6;
        let (ts, end) = (us(begin), us(Instant::now()));
        let event = Event { name, cat, ph: "X", ts, dur: end - ts, pid: 1, tid };
        if let Ok(mut events) = events.lock() {
            events.push(event);
        }
    }

    /// Writes what was recorded as a Chrome trace file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let events = match &self.events {
            Some(events) => events.lock().map(|e| e.clone()).unwrap_or_default(),
            None => Vec::new(),
        };
        let json = serde_json::json!({ "traceEvents": events, "displayTimeUnit": "ms" });
        std::fs::write(path, json.to_string())
            .map_err(|e| Error::io("write the trace to", path.display(), e))
    }
}
