//! Philox4x32-10: random numbers as a function of a key and a counter, without state.
//!
//! Salmon, Moraes, Dror, Shaw, *Parallel Random Numbers: As Easy as 1, 2, 3* (SC 2011). A number
//! depends only on where it is used, so a mini-batch is the same on any number of threads, in any
//! order, on a GPU, and after a resume. `docs/sampling.md` says byte for byte what goes where.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// The 128 bits that belong to `counter` under `key`.
#[inline(always)]
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let ([mut a, mut b, mut c, mut d], [mut k0, mut k1]) = (counter, key);
    for _ in 0..ROUNDS {
        let left = u64::from(a) * u64::from(MULTIPLIERS[0]);
        let right = u64::from(c) * u64::from(MULTIPLIERS[1]);
        (a, b, c, d) = (
            (right >> 32) as u32 ^ b ^ k0,
            right as u32,
            (left >> 32) as u32 ^ d ^ k1,
            left as u32,
        );
        (k0, k1) = (k0.wrapping_add(WEYL[0]), k1.wrapping_add(WEYL[1]));
    }
    [a, b, c, d]
}

/// The purpose of a key, so that no two uses share random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Choosing neighbours.
    Sample,
    /// Shuffling seeds.
    Shuffle,
}

impl Purpose {
    fn tag(self) -> u32 {
        match self {
            Self::Sample => 0x5341_4D50,
            Self::Shuffle => 0x5348_5546,
        }
    }
}

/// The key of one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochKey([u32; 2]);

impl EpochKey {
    /// The key for `purpose` in `epoch` of the run with `seed`: the first two words of Philox of
    /// the epoch under the seed.
    pub fn new(seed: u64, epoch: u64, purpose: Purpose) -> Self {
        Self::of(seed, epoch, purpose, 0)
    }

    /// The key for choosing neighbours along one edge type of several: as of [`new`](Self::new), with
    /// the type's number in the counter's last word. The first type's is that of a graph of one type.
    pub fn of_edge_type(seed: u64, epoch: u64, edge_type: u32) -> Self {
        Self::of(seed, epoch, Purpose::Sample, edge_type)
    }

    fn of(seed: u64, epoch: u64, purpose: Purpose, last: u32) -> Self {
        let counter = [epoch as u32, (epoch >> 32) as u32, purpose.tag(), last];
        let [a, b, ..] = philox4x32(counter, [seed as u32, (seed >> 32) as u32]);
        Self([a, b])
    }

    /// The two words of the key, as kernels take them.
    pub fn words(self) -> [u32; 2] {
        self.0
    }

    /// Draws `2 block` and `2 block + 1` of a stream: words 0 and 1, and words 2 and 3, the lower
    /// word first.
    #[inline(always)]
    pub fn draws(self, stream: Stream, block: u32) -> [u64; 2] {
        let counter = [stream.hop << HOP_SHIFT | block, stream.vertex, stream.batch, stream.tree];
        let [a, b, c, d] = philox4x32(counter, self.0);
        [u64::from(b) << 32 | u64::from(a), u64::from(d) << 32 | u64::from(c)]
    }
}

/// Draws come in blocks of two; a block's number has the low bits of the counter's first word.
pub const HOP_SHIFT: u32 = 24;

/// The most neighbours that can be drawn for one vertex.
pub const MAX_DRAWS: u32 = 2 << HOP_SHIFT;

/// The name of a stream of draws: those of one vertex that is expanded once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stream {
    /// The batch's number in its epoch.
    pub batch: u32,
    /// The hop, from 0; below 256.
    pub hop: u32,
    /// The vertex, as the graph numbers it.
    pub vertex: u32,
    /// In disjoint batches, the index of the seed in its batch; else 0.
    pub tree: u32,
}

/// An integer below `n` from a 64-bit draw: the upper word of their product (Lemire, *Fast Random
/// Integer Generation in an Interval*, 2019, without the rejection).
///
/// Two results differ in probability by at most 2⁻⁶⁴, relatively n / 2⁶⁴: below 2⁻³² here.
#[inline(always)]
pub fn below(draw: u64, n: u64) -> u64 {
    ((u128::from(draw) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that Random123 ships (`kat_vectors`, philox4x32 10).
    #[test]
    fn known_answers() {
        let vectors = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([!0; 4], [!0; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in vectors {
            assert_eq!(philox4x32(counter, key), expected);
        }
    }

    #[test]
    fn every_part_of_the_name_changes_the_draws() {
        let key = EpochKey::new(1, 2, Purpose::Sample);
        let stream = Stream { batch: 3, hop: 1, vertex: 4, tree: 5 };
        let names = [
            (key, stream, 0),
            (EpochKey::new(2, 2, Purpose::Sample), stream, 0),
            (EpochKey::new(1 + (1 << 32), 2, Purpose::Sample), stream, 0),
            (EpochKey::new(1, 3, Purpose::Sample), stream, 0),
            (EpochKey::new(1, 2, Purpose::Shuffle), stream, 0),
            (EpochKey::of_edge_type(1, 2, 1), stream, 0),
            (EpochKey::of_edge_type(1, 2, 2), stream, 0),
            (key, Stream { batch: 4, ..stream }, 0),
            (key, Stream { hop: 2, ..stream }, 0),
            (key, Stream { vertex: 5, ..stream }, 0),
            (key, Stream { tree: 6, ..stream }, 0),
            (key, stream, 1),
        ];
        let draws: Vec<[u64; 2]> = names.iter().map(|(k, s, b)| k.draws(*s, *b)).collect();
        for (i, a) in draws.iter().enumerate() {
            assert!(draws[..i].iter().all(|b| a != b), "name {i} shares its draws");
        }
    }

    #[test]
    fn below_covers_its_range_evenly() {
        assert_eq!((below(0, 7), below(u64::MAX, 7), below(u64::MAX, 1)), (0, 6, 0));
        let mut counts = [0u32; 7];
        for block in 0..35_000 {
            for draw in EpochKey::new(9, 0, Purpose::Sample).draws(Stream::default(), block) {
                counts[below(draw, 7) as usize] += 1;
            }
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
    }
}
