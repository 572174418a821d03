//! Sums of values over lists of plain ids: codec `raw`.

use crate::widest;

/// Ids whose values are fetched together, before they are added up: few enough for the L1 cache,
/// and no list's end among them makes a fetch wait.
const RUN: usize = 256;
/// Sums in flight, so that additions do not wait for one another.
const WIDTH: usize = 16;

/// Calls `add(vertex, Σ x[id])` for each list of ids, if there are any ids. An entry of `table` has a list's vertex and the
/// index in `ids` at which the list begins; one entry more says where the last list ends. These indices
/// begin at 0, never decrease, and end at `ids.len()`.
///
/// Values are added in float32 in runs of up to 256 and in float64 over the runs.
///
/// # Panics
/// If an id is not below `x.len()`, or the table does not end at `ids.len()`. A table that is wrong
/// otherwise panics or leaves lists out.
#[inline(never)]
pub fn sum_lists(x: &[f32], ids: &[u32], table: &[[u32; 2]], mut add: impl FnMut(u32, f64)) {
    assert_eq!(table.last().map_or(0, |entry| entry[1] as usize), ids.len(), "lists of all ids");
    let mut lists = table.windows(2).map(|entry| (entry[0][0], entry[1][1] as usize));
    let mut values = [0.0; RUN];
    let (mut list, mut sum, mut at) = (lists.next(), 0.0, 0);
    for ids in ids.chunks(RUN) {
        let end = at + ids.len();
        let mut left = gather(x, ids, &mut values);
        while let Some((vertex, list_end)) = list {
            let (now, later) = left.split_at(list_end.min(end) - at);
            (left, at) = (later, at + now.len());
            sum += f64::from(sum_of(now));
            if at < list_end {
                break;
            }
            add(vertex, sum);
            (list, sum) = (lists.next(), 0.0);
        }
    }
}

/// `x` of each of `ids`, in `values`.
///
/// The loads depend on nothing but the ids, so a core has as many in flight as it can; checks and
/// additions come before and after. No hardware gathers, which can be slow (see `sum`).
#[inline(never)]
fn gather<'a>(x: &[f32], ids: &[u32], values: &'a mut [f32; RUN]) -> &'a [f32] {
    let largest = widest(|| ids.iter().fold(0, |largest, &id| largest.max(id)));
    assert!((largest as usize) < x.len() || ids.is_empty(), "id {largest} of {}", x.len());
    for (value, &id) in values.iter_mut().zip(ids) {
        // SAFETY: no id is larger than `largest`, which is inside.
        *value = unsafe { *x.get_unchecked(id as usize) };
    }
    &values[..ids.len()]
}

#[inline(always)]
fn sum_of(values: &[f32]) -> f32 {
    let (wides, rest) = values.as_chunks::<WIDTH>();
    let mut sum = rest.iter().sum();
    if !wides.is_empty() {
        let mut sums = [0.0; WIDTH];
        for wide in wides {
            sums.iter_mut().zip(wide).for_each(|(sum, value)| *sum += value);
        }
        sum += sums.iter().sum::<f32>();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_one_by_one_additions() {
        let x: Vec<f32> = (0..1000).map(|i| (i % 17) as f32).collect();
        for lens in [vec![], vec![1], vec![3, 256, 1, 255, 5000], (1..200).collect::<Vec<u32>>()] {
            let ids: Vec<u32> = (0..lens.iter().sum()).map(|i| (i * 7919) % 1000).collect();
            let mut table = vec![[0; 2]];
            for (i, len) in lens.iter().enumerate() {
                table[i][0] = 7 * i as u32;
                table.push([0, table[i][1] + len]);
            }
            let mut found = Vec::new();
            sum_lists(&x, &ids, &table, |vertex, sum| found.push((vertex, sum)));
            let expected = table.windows(2).map(|list| {
                let ids = &ids[list[0][1] as usize..list[1][1] as usize];
                (list[0][0], ids.iter().map(|&id| f64::from(x[id as usize])).sum())
            });
            assert_eq!(found, expected.collect::<Vec<_>>(), "lists of {lens:?}");
        }
    }

    #[test]
    #[should_panic(expected = "id 4 of 4")]
    fn an_id_outside_is_refused() {
        sum_lists(&[0.0; 4], &[1, 4], &[[0, 0], [0, 2]], |_, _| ());
    }

    #[test]
    #[should_panic(expected = "lists of all ids")]
    fn a_table_of_fewer_ids_is_refused() {
        sum_lists(&[0.0; 4], &[1, 2], &[[0, 0], [0, 1]], |_, _| ());
    }
}
