//! Splitting a line into fields, where speed does not matter.

/// The byte between fields; `None` for any number of spaces and tabs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Delimiter(pub Option<u8>);

impl Delimiter {
    /// Whether a byte may stand before and after a field without a meaning.
    #[inline(always)]
    pub fn is_blank(self, b: u8) -> bool {
        b == b' ' || (b == b'\t' && self.0 != Some(b'\t'))
    }

    fn trim(self, text: &[u8]) -> &[u8] {
        let begin = text.iter().position(|b| !self.is_blank(*b)).unwrap_or(text.len());
        let end = text.iter().rposition(|b| !self.is_blank(*b)).map_or(begin, |last| last + 1);
        &text[begin..end]
    }

    /// The fields of a line. A field in double quotes may have delimiters inside, as may a field in
    /// braces between blanks (NetworkX writes `1 2 {'weight': 3}`). Between blanks `#` begins a comment;
    /// a delimiter at the end of a line ends its last field.
    pub fn fields(self, line: &[u8]) -> Vec<&[u8]> {
        self.split(line, true)
    }

    /// The same of a line whose fields may begin as comments do.
    pub fn fields_of_names(self, line: &[u8]) -> Vec<&[u8]> {
        self.split(line, false)
    }

    fn split(self, line: &[u8], may_end: bool) -> Vec<&[u8]> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (mut fields, mut rest) = (Vec::new(), self.trim(line));
        let begins_comment = |b: u8| b == b'#' && self.0.is_none() && may_end;
        while rest.first().is_some_and(|&b| !begins_comment(b)) {
            // A line feed inside is a field: a step forward in any case.
            let end = self.field_end(rest, 0).max(usize::from(self.0.is_none()));
            fields.push(self.trim(&rest[..end]));
            let skip = usize::from(self.0.is_some()).min(rest.len() - end);
            rest = self.trim(&rest[end + skip..]);
        }
        fields
    }

    /// Where the field ends that begins at `at`.
    #[inline]
    pub fn field_end(self, text: &[u8], mut at: usize) -> usize {
        let close = match (text.get(at), self.0) {
            (Some(b'"'), _) => Some(b'"'),
            (Some(b'{'), None) => Some(b'}'),
            _ => None,
        };
        if let Some(close) = close {
            loop {
                let inside = text[at + 1..].iter().position(|&b| b == close || b == b'\n');
                at += 1 + inside.unwrap_or(text.len() - at - 1);
                // Two quotes are one that is in the field.
                if close != b'"' || text.get(at..at + 2) != Some(b"\"\"") {
                    break;
                }
                at += 1;
            }
        }
        let rest = text.get(at..).unwrap_or_default();
        let ends = |b: &u8| match self.0 {
            Some(delimiter) => *b == delimiter || *b == b'\n',
            None => self.is_blank(*b) || *b == b'\n',
        };
        at + rest.iter().position(ends).unwrap_or(rest.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_split_as_they_are_written() {
        for (delimiter, line, fields) in [
            (None, " 1\t2  3 ", &["1", "2", "3"][..]),
            (None, "1 2 {'weight': 3, 'x': 4}", &["1", "2", "{'weight': 3, 'x': 4}"]),
            (None, "1 2 # why", &["1", "2"]),
            (None, "1\r2 \r\u{b} \n3", &["1\r2", "\r\u{b}", "\n", "3"]),
            (None, "1 2 \"a b\" 3", &["1", "2", "\"a b\"", "3"]),
            (Some(b','), "1, 2 ,3", &["1", "2", "3"]),
            (Some(b','), "1,2,", &["1", "2"]),
            (Some(b','), "1,2,,4", &["1", "2", "", "4"]),
            (Some(b','), ",source,target", &["", "source", "target"]),
            (Some(b','), "1,2,\"a, b\",3", &["1", "2", "\"a, b\"", "3"]),
            (Some(b','), "1,\"a \"\"b, c\"\"\",3", &["1", "\"a \"\"b, c\"\"\"", "3"]),
            (Some(b','), "\"\",2", &["\"\"", "2"]),
            (Some(b','), "", &[]),
            (Some(b'\t'), "\ta b\t\t3 \t\r\n", &["", "a b", "", "3"]),
        ] {
            let found = Delimiter(delimiter).fields(line.as_bytes());
            let found: Vec<_> =
                found.iter().map(|field| std::str::from_utf8(field).unwrap()).collect();
            assert_eq!(found, fields, "{line:?}");
        }
    }
}
