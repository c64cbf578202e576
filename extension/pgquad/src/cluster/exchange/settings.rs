//! The settings of the exchange, as it reads them.

use crate::settings;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use pgquad_cluster::exchange::port_range;

/// Quads that a join has to be expected to find before it is pushed.
pub fn min_quads() -> f64 {
    f64::from(settings::EXCHANGE_MIN_QUADS.get())
}

/// The size of batches, 0 where it adapts.
pub fn batch_bytes() -> usize {
    settings::EXCHANGE_BATCH_BYTES.get().max(0) as usize
}

/// The address that other nodes are told, where it is not the one that is listened on.
pub fn told_host() -> Option<IpAddr> {
    let text = settings::EXCHANGE_HOST.get().unwrap_or_default();
    settings::host(&text).ok().flatten()
}

/// The ports to listen on.
pub fn ports() -> RangeInclusive<u16> {
    let text = settings::EXCHANGE_PORTS.get().unwrap_or_default();
    port_range(&text.to_string_lossy()).unwrap_or(0..=0)
}
