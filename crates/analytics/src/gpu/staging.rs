//! Staging: values pass between the device and unpinned host memory through pinned buffers, which all
//! threads fill and empty.
//!
//! The driver's own copy has one thread, which is also the first to touch the memory of a result.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use tiergraph_core::{Result, ThreadPool};
use tiergraph_gpu::{Device, DeviceBuf, DeviceView, StagingBuffer};
use tiergraph_graph::Graph;
use tiergraph_mem::{HUGE_PAGE_BYTES, Reservation};

/// Bytes of a buffer: what the link moves in ten microseconds.
pub(super) const BUFFER_BYTES: usize = 512 << 10;

type Pair = [StagingBuffer; 2];

/// Values of vertices: `width` values side by side for each vertex.
pub(super) struct PerVertex<V> {
    pub values: V,
    pub width: usize,
}

/// Two pinned buffers for each thread: one is filled or emptied while the link is busy with the other.
#[derive(Debug)]
pub(super) struct Staging {
    pairs: Vec<Mutex<Pair>>,
    _held: Reservation,
}

impl Staging {
    /// Buffers for the threads of `graph`, within its budget.
    pub fn new(graph: &Graph, device: &Device) -> Result<Self> {
        let count = 2 * graph.thread_pool().size();
        let held = graph
            .memory()
            .reserve((count * BUFFER_BYTES) as u64, "what passes to and from the GPU")?;
        let mut buffers = StagingBuffer::several(device, count, BUFFER_BYTES)?.into_iter();
        let pair = || Some(Mutex::new([buffers.next()?, buffers.next()?]));
        Ok(Self { pairs: std::iter::from_fn(pair).collect(), _held: held })
    }

    /// The buffers of thread `number`; `None` if there are more threads than buffers.
    fn pair(&self, number: usize) -> Option<MutexGuard<'_, Pair>> {
        Some(self.pairs.get(number)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Downloads as many vertices of `from` as `to` has, part by part: `put(values, part)` fills a part
    /// of `to` from the values downloaded for it. The caller has waited for work on `from`.
    pub fn download<T: Pod + Sync, U: Send>(
        &self,
        threads: &ThreadPool,
        from: PerVertex<&DeviceBuf<T>>,
        to: PerVertex<&mut [U]>,
        put: impl Fn(&[T], &mut [U]) + Sync,
    ) -> Result<()> {
        let PerVertex { values: from, width: per } = from;
        let PerVertex { values: out, width: per_out } = to;
        let step = step::<T>(per);
        let done = threads.share(pieces(out, per_out), |number, pieces| {
            let Some(mut pair) = self.pair(number) else { return Ok(()) };
            let mut under_way: Option<(usize, &mut [U])> = None;
            let mut which = 0;
            for (first, piece) in pieces {
                for (part, out) in piece.chunks_mut(step * per_out).enumerate() {
                    let begin = (first + part * step) * per;
                    let len = out.len() / per_out * per;
                    pair[which].begin_download(from, begin..begin + len)?;
                    which ^= 1;
                    if let Some((len, out)) = under_way.replace((len, out)) {
                        put(pair[which].values(len)?, out);
                    }
                }
            }
            if let Some((len, out)) = under_way {
                put(pair[which ^ 1].values(len)?, out);
            }
            Ok(())
        })?;
        done.into_iter().collect()
    }

    /// Uploads all vertices of `from`, part by part: `put(part, values)` fills a part's values.
    pub fn upload<T: Pod + Sync, U: Sync>(
        &self,
        threads: &ThreadPool,
        from: PerVertex<&[U]>,
        to: PerVertex<DeviceView<T>>,
        put: impl Fn(&[U], &mut [T]) + Sync,
    ) -> Result<()> {
        let PerVertex { values: from, width: per_from } = from;
        let PerVertex { values: to, width: per } = to;
        let step = step::<T>(per);
        let done = threads.share(from.chunks(step * per_from).enumerate(), |number, parts| {
            let Some(mut pair) = self.pair(number) else { return Ok(()) };
            let mut which = 0;
            for (part, from) in parts {
                let len = from.len() / per_from * per;
                put(from, pair[which].values(len)?);
                pair[which].begin_upload(to, part * step * per, len)?;
                which ^= 1;
            }
            pair.iter().try_for_each(StagingBuffer::synchronize)
        })?;
        done.into_iter().collect()
    }
}

/// The number of vertices, of `per` values each, that a buffer holds.
fn step<T>(per: usize) -> usize {
    let step = BUFFER_BYTES / (per * size_of::<T>());
    assert!(step > 0, "{per} values of {} bytes fit no buffer", size_of::<T>());
    step
}

/// Cuts `out` near the ends of huge pages, so that one thread is first to touch each page. A piece comes
/// with the number of its first vertex, of `per` values each.
fn pieces<U>(out: &mut [U], per: usize) -> impl Iterator<Item = (usize, &mut [U])> + Send
where
    U: Send,
{
    let bytes = per * size_of::<U>();
    let head = out.as_ptr().cast::<u8>().align_offset(HUGE_PAGE_BYTES) / bytes * per;
    let (head, rest) = out.split_at_mut(head.min(out.len()));
    let (first, each) = (head.len() / per, (HUGE_PAGE_BYTES / bytes).max(1));
    let rest = rest.chunks_mut(each * per).enumerate();
    [(0, head)].into_iter().chain(rest.map(move |(i, piece)| (first + i * each, piece)))
}
