//! The parts that machines are made of, and their prices: `parts.toml`, beside this crate's manifest.

use std::collections::BTreeMap;

use serde::Deserialize;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_nvme::DriveKind;

const BUILT_IN: &str = include_str!("../parts.toml");
/// Years of the total cost of ownership.
const YEARS: f64 = 5.0;
const HOURS_A_YEAR: f64 = 8760.0;

/// A machine without its GPU and drives.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// What it is called.
    pub name: String,
    /// Its price, in dollars; `None` if it is not known.
    pub dollars: Option<f64>,
    /// The most drives that it takes.
    pub drive_slots: u32,
    /// What its GPU reads from the host and its drives, in bytes a second.
    pub link_bytes_per_second: f64,
    /// Its power, with everything in it.
    pub watts: f64,
    /// Electricity for five years, in dollars, where it is not its `watts` at the price of power.
    pub electricity_dollars: Option<f64>,
    /// Bytes of its memory, which `dollars` has; `None` if they are not known.
    pub memory_bytes: Option<f64>,
    /// The price of a GiB of memory beside those; `None` if it is not known.
    pub memory_dollars_per_gib: Option<f64>,
    /// Where the figures come from.
    pub source: String,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// The maker's name for it.
    pub name: String,
    /// Its price, in dollars; `None` if it is not known.
    pub dollars: Option<f64>,
    /// Bytes of its memory; `None` if they are not known.
    pub memory_bytes: Option<f64>,
    /// Where the figures come from.
    pub source: String,
}

/// Machines and GPUs, by the names that users give them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// The price of power, in dollars.
    pub dollars_per_kwh: f64,
    /// Machines.
    pub machines: BTreeMap<String, Machine>,
    /// GPUs.
    pub gpus: BTreeMap<String, Gpu>,
    /// Drives beside those of the program's catalogue, or in their place.
    #[serde(default)]
    pub drives: BTreeMap<String, DriveKind>,
}

impl Parts {
    /// The parts that come with the program.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] for a catalogue that says what it cannot.
    pub fn built_in() -> Result<Self> {
        Self::parse(BUILT_IN, "the catalogue of parts")
    }

    /// The parts of a user's catalogue, `text` of the file `name`.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] for one that says what it cannot.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        toml::from_str(text)
            .map_err(|e| Error::new(ErrorKind::Format, "read").object(name).source(e))
    }

    /// The machine that is called `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if there is none.
    pub fn machine(&self, key: &str) -> Result<&Machine> {
        self.machines.get(key).ok_or_else(|| unknown("machine", key, self.machines.keys()))
    }

    /// The GPU that is called `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if there is none.
    pub fn gpu(&self, key: &str) -> Result<&Gpu> {
        self.gpus.get(key).ok_or_else(|| unknown("GPU", key, self.gpus.keys()))
    }

    /// The drive that is called `key`, here or in the program's catalogue of drives.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if there is none.
    pub fn drive(&self, key: &str) -> Result<DriveKind> {
        self.drives.get(key).cloned().map_or_else(|| DriveKind::named(key), Ok)
    }

    /// Electricity of a machine for five years, in dollars.
    pub fn electricity(&self, machine: &Machine) -> f64 {
        let kilowatt_hours = machine.watts / 1000.0 * HOURS_A_YEAR * YEARS;
        machine.electricity_dollars.unwrap_or(kilowatt_hours * self.dollars_per_kwh)
    }
}

fn unknown<'a>(what: &str, key: &str, known: impl Iterator<Item = &'a String>) -> Error {
    let known: Vec<String> = known.map(|key| format!("`{key}`")).collect();
    Error::new(ErrorKind::Input, format!("plan for the {what}"))
        .object(key)
        .expected(format!("one of {}", known.join(", ")))
}

/// A part's price.
///
/// # Errors
/// [`ErrorKind::Input`] if it is not known.
pub(crate) fn price(name: &str, dollars: Option<f64>) -> Result<f64> {
    dollars.filter(|dollars| dollars.is_finite() && *dollars >= 0.0).ok_or_else(|| {
        Error::new(ErrorKind::Input, "plan with")
            .object(name)
            .expected("its price")
            .got("none in the catalogue")
            .hint("name a catalogue of parts that has its `dollars` (`--parts`)")
    })
}
