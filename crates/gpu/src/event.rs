//! Events: points in a stream's order, which tell when copies have ended.

use std::ptr;
use std::time::Duration;

use tiergraph_core::Result;
use tiergraph_mem::AlignedBuf;

use crate::driver::{Handle, NOT_READY};
use crate::{Device, Stream};

const NO_TIMING: u32 = 2;

/// A point in a stream's order: the event happens when all work before it has ended.
#[derive(Debug)]
pub struct Event {
    device: Device,
    handle: Handle,
}

// SAFETY: the driver takes an event from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that is not recorded yet, and counts as having happened.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        Self::with_flags(device, NO_TIMING)
    }

    /// An event behind all work that was submitted to `stream` so far.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn behind(stream: &Stream) -> Result<Self> {
        let event = Self::new(stream.device())?;
        event.record(stream)?;
        Ok(event)
    }

    /// An event like one of [`new`](Self::new), whose time is known once it has happened.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn timed(device: &Device) -> Result<Self> {
        Self::with_flags(device, 0)
    }

    fn with_flags(device: &Device, flags: u32) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle, destroyed in `drop`.
        device.call("make an event", |d| unsafe { (d.event_create)(&raw mut handle, flags) })?;
        Ok(Self { device: device.clone(), handle })
    }

    /// Puts the event behind all work that was submitted to `stream` so far.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        // SAFETY: a live event and a live stream.
        self.device
            .call("record an event", |d| unsafe { (d.event_record)(self.handle, stream.raw()) })
    }

    pub(crate) fn raw(&self) -> Handle {
        self.handle
    }

    /// Whether the event has happened.
    ///
    /// # Errors
    /// Any error of the work before it.
    pub fn happened(&self) -> Result<bool> {
        // SAFETY: a live event.
        match self.device.ask(|d| unsafe { (d.event_query)(self.handle) }) {
            NOT_READY => Ok(false),
            code => self.device.explain(code, "finish the GPU's work").map(|()| true),
        }
    }

    /// The time from the event `earlier` to this one, to half a microsecond. Both are timed, and have
    /// happened.
    ///
    /// # Errors
    /// An event that has not happened, or any error of the work before it.
    pub fn since(&self, earlier: &Self) -> Result<Duration> {
        let mut milliseconds = 0f32;
        // SAFETY: two live events; writes one number.
        self.device.call("ask how long the GPU took", |d| unsafe {
            (d.event_elapsed)(&raw mut milliseconds, earlier.handle, self.handle)
        })?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds).max(0.0) * 1e-3))
    }

    /// Waits until the event has happened.
    ///
    /// # Errors
    /// Any error of the work before it.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: a live event.
        self.device.call("finish the GPU's work", |d| unsafe { (d.event_sync)(self.handle) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made in `record`.
        self.device.release(|d| unsafe { (d.event_destroy)(self.handle) });
    }
}

/// A copy from host memory to the GPU, which may be under way, and the buffers that it reads; dropping
/// it waits for the copy's end.
#[derive(Debug)]
pub struct Copying<B: Default = AlignedBuf> {
    buffers: B,
    event: Option<Event>,
}

impl<B: Default> Copying<B> {
    /// The work that was submitted to `stream` so far, which reads `buffers`.
    pub(crate) fn until(event: Event, stream: &Stream, buffers: B) -> Result<Self> {
        match event.record(stream) {
            Ok(()) => Ok(Self { buffers, event: Some(event) }),
            Err(e) => {
                // Nobody knows when that ends: the buffers must stay.
                std::mem::forget(buffers);
                Err(e)
            }
        }
    }

    /// Whether the copy has ended.
    ///
    /// # Errors
    /// Any error of the copy, or of work before it on its stream.
    pub fn is_done(&self) -> Result<bool> {
        self.event.as_ref().map_or(Ok(true), Event::happened)
    }

    /// Waits for the copy's end and returns its buffers and its event, for use by another copy.
    ///
    /// # Errors
    /// Any error of the copy, or of work before it on its stream; the buffers are dropped then.
    pub fn finish(mut self) -> Result<(B, Option<Event>)> {
        let event = self.event.take();
        event.as_ref().map_or(Ok(()), Event::synchronize)?;
        Ok((std::mem::take(&mut self.buffers), event))
    }
}

impl<B: Default> Drop for Copying<B> {
    fn drop(&mut self) {
        // After an error the context does nothing more, so the buffers may go.
        let _ = self.event.as_ref().map_or(Ok(()), Event::synchronize);
    }
}
