//! Launches of `greedy.cu`.

use tiergraph_core::Result;

use super::queue::{DeviceQueue, Ends, QueueArguments, TEXT};
use super::{DeviceLists, Source, THREADS, resident_grid, source_with, warp_blocks};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

shared! {
    struct GreedyArguments as "Greedy" {
        priority: DevicePtr<u64>,
        state: DevicePtr<u32>,
        waits: DevicePtr<u32>,
    }
}

/// What a greedy pass decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Whether a vertex is chosen (1) or not (0): it is where no neighbour before it was.
    Set,
    /// The least colour that no neighbour before it has.
    Color,
}

/// The most rounds that are started before the host looks at what they decided.
const MOST_ROUNDS: usize = 64;

/// A greedy pass over the vertices of some lists, and what was decided so far.
#[derive(Debug)]
pub struct GreedyKernels {
    count: Kernel,
    note: Kernel,
    /// For vertices of short lists, and of long ones.
    decide: [Kernel; 2],
    priority: DeviceBuf<u64>,
    state: DeviceBuf<u32>,
    waits: DeviceBuf<u32>,
    queue: DeviceQueue,
    /// Where the queue ended before the rounds that are started together, and before each of them.
    ends: DeviceBuf<u32>,
    done: Ends,
    /// How many rounds are started together next.
    together: usize,
}

pub(super) fn source() -> Source {
    source_with("greedy", &[TEXT, include_str!("greedy.cu")])
        .sharing::<QueueArguments>()
        .sharing::<GreedyArguments>()
}

impl GreedyKernels {
    /// Compiles the kernels, and finds the vertices that wait for no other; those of greater `priority` come before.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    ///
    /// # Panics
    /// If there are more or fewer priorities than lists.
    pub fn new(
        device: &Device,
        stream: &Stream,
        lists: &DeviceLists,
        priority: DeviceBuf<u64>,
        choice: Choice,
    ) -> Result<Self> {
        assert_eq!(priority.len(), lists.vertices(), "a priority a list");
        let module = source().compile(device)?;
        let name = if choice == Choice::Set { "choose" } else { "color" };
        let n = priority.len();
        let mut this = Self {
            count: module.kernel("count_before")?,
            note: module.kernel("note_ends")?,
            decide: [
                module.kernel(&format!("{name}_short"))?,
                module.kernel(&format!("{name}_long"))?,
            ],
            priority,
            state: DeviceBuf::new(device, n)?,
            waits: DeviceBuf::new(device, n)?,
            queue: DeviceQueue::new(device, n)?,
            ends: DeviceBuf::new(device, 2 * (MOST_ROUNDS + 1))?,
            done: [0, 0],
            together: 1,
        };
        this.queue.clear(stream)?;
        let grid = resident_grid(&this.count, warp_blocks(n as u32))?;
        // SAFETY: `Lists`, `Queue` and `Greedy` of the source; all have a place for each list.
        unsafe {
            let queue = this.queue.arguments();
            this.count.launch(stream, grid, &[&lists.arguments(), &queue, &this.arguments()])?;
        }
        Ok(this)
    }

    /// Decides the vertices that wait for no other any more, some rounds one after the other; returns how many each
    /// decided, without the rounds that had none left. They are thousands where hubs wait for hubs, and the host looks
    /// at more and more of them together.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn rounds(&mut self, stream: &Stream, lists: &DeviceLists) -> Result<Vec<u32>> {
        assert_eq!(self.priority.len(), lists.vertices(), "a priority a list");
        let (lists, queue, greedy) = (lists.arguments(), self.queue.arguments(), self.arguments());
        stream.upload_at(&mut self.ends, 0, &self.done)?;
        let [short, long] = &self.decide;
        let decide = [short, long].map(|kernel| Ok((kernel, resident_grid(kernel, u32::MAX)?)));
        let decide: Vec<(&Kernel, Grid)> = decide.into_iter().collect::<Result<_>>()?;
        for round in 0..self.together {
            let ends = [round, round + 1].map(|note| self.ends.ptr().offset(2 * note));
            let one = Grid { blocks: 1, threads: THREADS };
            // SAFETY: `Lists`, `Queue` and `Greedy` of the source, and two numbers for each note; each vertex is in the
            // queue once, when all before it were decided.
            unsafe {
                self.note.launch(stream, one, &[&queue, &ends[1]])?;
                for &(kernel, grid) in &decide {
                    kernel.launch(stream, grid, &[&lists, &queue, &greedy, &ends[0], &ends[1]])?;
                }
            }
        }
        let ends = stream.download(&self.ends, 2 * (self.together + 1))?;
        self.done = [ends[2 * self.together], ends[2 * self.together + 1]];
        self.together = (2 * self.together).min(MOST_ROUNDS);
        let decided = ends.windows(4).step_by(2).map(|e| e[2] - e[0] + e[3] - e[1]);
        Ok(decided.take_while(|&decided| decided > 0).collect())
    }

    /// What was decided of each vertex.
    pub fn state(&self) -> &DeviceBuf<u32> {
        &self.state
    }

    fn arguments(&self) -> GreedyArguments {
        GreedyArguments {
            priority: self.priority.ptr(),
            state: self.state.ptr(),
            waits: self.waits.ptr(),
        }
    }
}
