//! Settings of the exchange.

use std::ffi::{c_char, c_void, CStr, CString};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use pgquad_cluster::exchange::{port_range, MOST_BATCH_BYTES};
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Ports that participants listen on.
static PORTS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"0"));
/// Address that other nodes are told.
static HOST: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
/// Bytes of rows that are collected for a node before they are sent.
static BATCH_BYTES: GucSetting<i32> = GucSetting::<i32>::new(0);
/// Quads that a join has to be expected to find before it is pushed. Milliseconds pulled and pushed, on three nodes of
/// two cores (Berlin data, 1M): 32,000 quads 1.5 and 3.4; 100,000 quads 1.8 and 7.1. 185,000 quads took 1.4 and 7;
/// 280,000 quads 12 and 7.
static MIN_QUADS: GucSetting<i32> = GucSetting::<i32>::new(200_000);

/// Defines the settings; called once from `_PG_init`.
pub fn init() {
    // SAFETY: the hooks are guarded.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"quad.exchange_ports",
            c"Ports on which processes take rows from other nodes: 0 for any free one, or a range such as 20000-20999.",
            c"Each session that takes part in joins of a distributed store listens on one of them.",
            &PORTS,
            GucContext::Sighup,
            GucFlags::default(),
            Some(check_ports),
            None,
            None,
        );
        GucRegistry::define_string_guc_with_hooks(
            c"quad.exchange_host",
            c"IP address at which processes of other nodes reach those of this one.",
            c"Empty: the address at which they find its PostgreSQL. Where addresses are translated, or a proxy stands between the nodes, another one.",
            &HOST,
            GucContext::Sighup,
            GucFlags::default(),
            Some(check_host),
            None,
            None,
        );
    }
    GucRegistry::define_int_guc(
        c"quad.exchange_batch_bytes",
        c"Memory for the rows that go to another node, 8 bytes for each value: half are collected, half are on their way.",
        c"0 lets it adapt: larger while writes do not block, smaller when they do.",
        &BATCH_BYTES,
        0,
        MOST_BATCH_BYTES as i32,
        GucContext::Userset,
        GucFlags::UNIT_BYTE,
    );
    GucRegistry::define_int_guc(
        c"quad.exchange_min_quads",
        c"Quads that a join has to be expected to find before all nodes run it, where quad.exchange_mode is auto.",
        c"A session that has to start processes for that on the nodes expects three times as many.",
        &MIN_QUADS,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Quads that a join has to be expected to find before it is pushed.
pub fn min_quads() -> f64 {
    f64::from(MIN_QUADS.get())
}

/// The size of batches, 0 where it adapts.
pub fn batch_bytes() -> usize {
    BATCH_BYTES.get().max(0) as usize
}

/// The address that other nodes are told, where it is not the one that is listened on.
pub fn told_host() -> Option<IpAddr> {
    let text = HOST.get().unwrap_or_default();
    host(&text).ok().flatten()
}

/// The ports to listen on.
pub fn ports() -> RangeInclusive<u16> {
    let text = PORTS.get().unwrap_or_default();
    port_range(&text.to_string_lossy()).unwrap_or(0..=0)
}

/// The address that a text names, if it names any.
fn host(text: &CStr) -> Result<Option<IpAddr>, std::net::AddrParseError> {
    let text = text.to_string_lossy();
    match text.trim() {
        "" => Ok(None),
        host => host.parse().map(Some),
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn check_ports(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the new value is a C string.
    let text = unsafe { CStr::from_ptr(*value) };
    let is_range = port_range(&text.to_string_lossy()).is_some();
    if !is_range {
        explain(
            c"It is not a range of ports.",
            c"Write 0 for any free port, one port, or a range such as 20000-20999.",
        );
    }
    is_range
}

#[pg_guard]
unsafe extern "C-unwind" fn check_host(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the new value is a C string.
    let is_host = host(unsafe { CStr::from_ptr(*value) }).is_ok();
    if !is_host {
        explain(
            c"It is not an IP address.",
            c"Write an address such as 10.0.0.5, or nothing.",
        );
    }
    is_host
}

/// Says what is wrong with a value that a check refuses, in the error or message that PostgreSQL makes of that (22023).
fn explain(detail: &'static CStr, hint: &'static CStr) {
    // SAFETY: PostgreSQL reads these when the check returns, and never writes or frees them: they are C strings in its
    // own memory for errors elsewhere.
    unsafe {
        pg_sys::GUC_check_errdetail_string = detail.as_ptr().cast_mut();
        pg_sys::GUC_check_errhint_string = hint.as_ptr().cast_mut();
    }
}
