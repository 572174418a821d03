//! `intersect`: what two ascending lists share, or a list and a set of marked vertices, a bit for each.

/// A list this many times longer than the other is searched, and not walked.
const MUCH_LONGER: usize = 16;

/// Shows `visit` every value that both lists have, ascending; neither has a value twice.
#[inline]
pub(super) fn each_common(a: &[u32], b: &[u32], mut visit: impl FnMut(u32)) {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if many.len() / MUCH_LONGER > few.len() {
        let mut rest = many;
        for &value in few {
            rest = &rest[rest.partition_point(|&other| other < value)..];
            if rest.first() == Some(&value) {
                visit(value);
            }
        }
        return;
    }
    let (mut i, mut j) = (0, 0);
    while i < few.len() && j < many.len() {
        let (x, y) = (few[i], many[j]);
        if x == y {
            visit(x);
        }
        // Which of them goes on is not guessed by a branch.
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
}

/// Whether `marks`, a bit a vertex, has vertex `v` marked.
#[inline(always)]
pub(super) fn has(marks: &[u64], v: u32) -> bool {
    marks[(v >> 6) as usize] >> (v & 63) & 1 != 0
}

/// Marks vertex `v`, or has it be marked no more.
#[inline(always)]
pub(super) fn flip(marks: &mut [u64], v: u32) {
    marks[(v >> 6) as usize] ^= 1 << (v & 63);
}
