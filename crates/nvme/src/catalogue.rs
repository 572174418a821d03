//! The catalogue of drives that are imitated: `drives.toml`, beside this crate's manifest.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use tiergraph_core::{Error, ErrorKind, Result};

use crate::ModelledDrive;

const BUILT_IN: &str = include_str!("../drives.toml");

/// A kind of drive.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveKind {
    /// The maker's name for it.
    pub name: String,
    /// The bandwidth of large reads.
    pub bytes_per_second: f64,
    /// The most reads a second, by their bytes: between two sizes the smaller one's figure holds.
    pub reads_per_second: BTreeMap<String, f64>,
    /// Microseconds from a command to its completion on an idle drive, without the transfer.
    pub latency_us: f64,
    /// The price of one, in dollars; `None` if it is not known.
    pub dollars: Option<f64>,
    /// Where the figures come from.
    pub source: String,
}

impl DriveKind {
    /// The kind that the catalogue calls `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if it has none of that name.
    pub fn named(key: &str) -> Result<Self> {
        let mut all = Self::all()?;
        all.remove(key).ok_or_else(|| {
            let known: Vec<String> = all.keys().map(|key| format!("`{key}`")).collect();
            Error::new(ErrorKind::Input, "imitate the drive")
                .object(key)
                .expected(format!("one of {}", known.join(", ")))
        })
    }

    /// All kinds, by name.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] for a catalogue that says what it cannot.
    pub fn all() -> Result<BTreeMap<String, Self>> {
        read(BUILT_IN)
    }

    /// `count` such drives that share reads out: as many times the bandwidth and reads a second.
    ///
    /// # Errors
    /// As [`ModelledDrive::new`].
    pub fn modelled(&self, count: usize) -> Result<ModelledDrive> {
        let (times, latency) = (count.max(1) as f64, self.latency_us / 1e6);
        let latency = Duration::try_from_secs_f64(latency).map_err(|e| self.refused().source(e))?;
        let rates =
            self.rates()?.into_iter().map(|(bytes, reads)| (bytes, reads * times)).collect();
        ModelledDrive::by_size(self.bytes_per_second * times, rates, latency)
    }

    /// Seconds that one such drive takes for so many reads of `bytes` each, many in flight.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] for sizes of reads that are no numbers.
    pub fn seconds(&self, reads: f64, bytes: f64) -> Result<f64> {
        let rates = self.rates()?;
        let below = rates.iter().rev().find(|(size, _)| **size as f64 <= bytes);
        let rate = below.or(rates.iter().next()).map_or(f64::INFINITY, |(_, rate)| *rate);
        Ok((reads / rate).max(reads * bytes / self.bytes_per_second))
    }

    /// The most reads a second of one, by their bytes.
    fn rates(&self) -> Result<BTreeMap<usize, f64>> {
        let rate = |(bytes, reads): (&String, &f64)| {
            let bytes = bytes.parse::<usize>().map_err(|e| self.refused().source(e))?;
            Ok((bytes, *reads))
        };
        self.reads_per_second.iter().map(rate).collect()
    }

    fn refused(&self) -> Error {
        Error::new(ErrorKind::Format, "read the catalogue's drive").object(&self.name)
    }
}

fn read(text: &str) -> Result<BTreeMap<String, DriveKind>> {
    toml::from_str(text)
        .map_err(|e| Error::new(ErrorKind::Format, "read the catalogue of drives").source(e))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn every_drive_of_the_catalogue_can_be_imitated() {
        let all = DriveKind::all().unwrap();
        assert!(all.len() >= 4);
        for (key, kind) in all {
            assert_eq!(DriveKind::named(&key).unwrap(), kind);
            assert!(!kind.source.is_empty() && !kind.name.is_empty());
            kind.modelled(12).unwrap();
        }
        let error = DriveKind::named("p4510").unwrap_err().to_string();
        assert!(error.contains("`p4510`: expected one of `980pro`, `p5510`"), "{error}");
    }

    #[test]
    fn reads_take_what_their_size_and_the_bandwidth_say() {
        let text = "[x]\nname = 'x'\nbytes_per_second = 4_096_000\nlatency_us = 0\nsource = 'x'\n\
                    reads_per_second = { 512 = 2000, 4096 = 500 }";
        let kind = read(text).unwrap().remove("x").unwrap();
        let drive = kind.modelled(2).unwrap();
        let start = Instant::now() + Duration::from_secs(100);
        let mut last = start;
        let mut micros = |bytes| {
            let before = std::mem::replace(&mut last, drive.answer_at(bytes, start));
            (last - before).as_micros()
        };
        // Twice the rates; from 16 KiB on the bandwidth is the limit.
        assert_eq!([512, 2048, 4096, 8192, 65536].map(&mut micros), [250, 250, 1000, 1000, 8000]);
        assert!(read("[x]\nname = 'x'").is_err());
        // So many at a time, one drive: half as fast as the two.
        let seconds = |bytes| kind.seconds(1000.0, bytes).unwrap();
        assert_eq!(
            [100.0, 512.0, 2048.0, 4096.0, 65536.0].map(seconds),
            [0.5, 0.5, 0.5, 2.0, 16.0]
        );
    }
}
