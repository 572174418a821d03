//! The kind of values in each column, found from the first lines.

use super::named::bare;
use crate::source::columns::Kind;

/// Integers above this are taken for times: seconds since 1970 have passed it in 1973.
const TIMES: f64 = 1e8;
/// Integers that do not fall in so many lines are taken for times.
const ASCENDING_LINES: usize = 100;

/// The kinds of the columns of `lines`, as many as the first one has.
pub(super) fn kinds<'a>(
    lines: &[&'a [u8]],
    fields: impl Fn(&'a [u8]) -> Vec<&'a [u8]>,
) -> Vec<Kind> {
    let columns = lines.first().map_or(0, |line| fields(line).len());
    let mut seen = vec![Seen::default(); columns];
    for line in lines {
        let fields = fields(line);
        // Where the number of fields differs, the scan says so, with the line.
        if fields.len() == columns {
            seen.iter_mut().zip(fields).for_each(|(seen, field)| seen.add(field));
        }
    }
    seen.iter().map(Seen::kind).collect()
}

/// Counts of one column's values so far.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    values: usize,
    /// Values that are numbers of 0 or more.
    fit: usize,
    /// Numbers of 0 or more that are no integers.
    fractions: usize,
    /// Whether any value is a number, or begins like one.
    numbers: bool,
    first: f64,
    last: f64,
    most: f64,
    /// Whether a value was less than the one before it.
    falls: bool,
}

impl Seen {
    fn add(&mut self, field: &[u8]) {
        let field = bare(field);
        self.values += 1;
        let number = std::str::from_utf8(field).ok().and_then(|text| text.parse::<f64>().ok());
        // Also `0,5` and `3 km`, which are told about where they are not read.
        self.numbers |= number.is_some() || field.first().is_some_and(u8::is_ascii_digit);
        let Some(number) = number.filter(|number| number.is_finite() && *number >= 0.0) else {
            return;
        };
        if self.fit == 0 {
            (self.first, self.last) = (number, number);
        }
        self.fit += 1;
        self.fractions += usize::from(!field.iter().all(u8::is_ascii_digit));
        self.falls |= number < self.last;
        (self.last, self.most) = (number, self.most.max(number));
    }

    fn kind(&self) -> Kind {
        let ascends = !self.falls && self.values >= ASCENDING_LINES && self.last > self.first;
        match self {
            Self { numbers: false, .. } => Kind::Other,
            _ if self.fit < self.values => Kind::Unfit,
            _ if self.fractions > 0 => Kind::Number,
            _ if self.most > TIMES || ascends => Kind::Time,
            _ => Kind::Integer,
        }
    }
}
