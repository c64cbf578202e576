//! Settings of the exchange.

use std::ffi::CString;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use pgquad_cluster::exchange::{port_range, MOST_BATCH_BYTES};
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::PgSqlErrorCode;

use crate::pg::error::raise_hint;

/// Ports that participants listen on.
static PORTS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"0"));
/// Address that other nodes are told.
static HOST: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
/// Bytes of rows that are collected for a node before they are sent.
static BATCH_BYTES: GucSetting<i32> = GucSetting::<i32>::new(0);

/// Defines the settings; called once from `_PG_init`.
pub fn init() {
    GucRegistry::define_string_guc(
        c"quad.exchange_ports",
        c"Ports on which processes take rows from other nodes: 0 for any free one, or a range such as 20000-20999.",
        c"Each session that takes part in joins of a distributed store listens on one of them.",
        &PORTS,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"quad.exchange_host",
        c"IP address at which processes of other nodes reach those of this one.",
        c"Empty: the address at which they find its PostgreSQL. Where addresses are translated, or a proxy stands between the nodes, another one.",
        &HOST,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"quad.exchange_batch_bytes",
        c"Size of the batches of rows that nodes send to each other, 8 bytes for each value.",
        c"0 lets it adapt: larger while writes do not block, smaller when they do.",
        &BATCH_BYTES,
        0,
        MOST_BATCH_BYTES as i32,
        GucContext::Userset,
        GucFlags::UNIT_BYTE,
    );
}

/// The size of batches, 0 where it adapts.
pub fn batch_bytes() -> usize {
    BATCH_BYTES.get().max(0) as usize
}

/// The address that other nodes are told, where it is not the one that is listened on.
pub fn told_host() -> Option<IpAddr> {
    let text = HOST.get().unwrap_or_default();
    let text = text.to_string_lossy();
    if text.trim().is_empty() {
        return None;
    }
    let host = text.trim().parse().unwrap_or_else(|_| {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("quad.exchange_host is not an IP address: \"{text}\""),
            "Write an address such as 10.0.0.5, or nothing.",
        )
    });
    Some(host)
}

/// The ports to listen on.
pub fn ports() -> RangeInclusive<u16> {
    let text = PORTS.get().unwrap_or_default();
    let text = text.to_string_lossy();
    port_range(&text).unwrap_or_else(|| {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("quad.exchange_ports is not a range of ports: \"{text}\""),
            "Write 0 for any free port, one port, or a range such as 20000-20999.",
        )
    })
}
