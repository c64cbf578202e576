//! Settings of requests over http(s).

use std::ffi::CString;
use std::time::Duration;

use pgquad_remote::{Client, Limits, Rules};
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PgSqlErrorCode};

use crate::pg::error::{raise, raise_hint};

static ALLOWED: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static NETWORKS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static AUTHORITIES: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static TIMEOUT_MS: GucSetting<i32> = GucSetting::<i32>::new(30_000);
static MAX_KB: GucSetting<i32> = GucSetting::<i32>::new(1 << 20);

const ALLOWED_NAME: &str = "quad.http_allowed";
const NETWORKS_NAME: &str = "quad.http_private_networks";
const AUTHORITIES_NAME: &str = "quad.http_ca_file";

/// Defines the settings.
pub fn init() {
    let text = |name, short, long, setting| {
        GucRegistry::define_string_guc(
            name,
            short,
            long,
            setting,
            GucContext::Suset,
            GucFlags::default(),
        );
    };
    text(
        c"quad.http_allowed",
        c"Servers that SERVICE and LOAD may ask, as [http[s]://]host[:port], separated by commas.",
        c"A host may be * or begin with \"*.\"; a port may be *. Empty: none.",
        &ALLOWED,
    );
    text(
        c"quad.http_private_networks",
        c"Networks besides the public internet that SERVICE and LOAD may connect to.",
        c"Addresses or address/length, separated by commas. The servers must be allowed too.",
        &NETWORKS,
    );
    text(
        c"quad.http_ca_file",
        c"PEM file of the certificate authorities that https servers are trusted by.",
        c"Empty: the authorities that Mozilla trusts.",
        &AUTHORITIES,
    );
    GucRegistry::define_int_guc(
        c"quad.http_timeout",
        c"Longest time that SERVICE and LOAD wait for a server that sends nothing.",
        c"",
        &TIMEOUT_MS,
        1,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"quad.http_max_size",
        c"Largest answer that SERVICE and LOAD take.",
        c"A compressed document counts unpacked.",
        &MAX_KB,
        1,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_KB,
    );
}

/// Largest answer in bytes.
pub fn max_bytes() -> u64 {
    MAX_KB.get() as u64 * 1024
}

/// A client under the rules of the settings.
pub fn client() -> Client {
    let allowed = text(ALLOWED_NAME, &ALLOWED);
    let networks = text(NETWORKS_NAME, &NETWORKS);
    let rules = Rules::parse(&allowed, &networks).unwrap_or_else(|error| {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("setting {ALLOWED_NAME} or {NETWORKS_NAME}: {error}"),
        )
    });
    let limits = Limits {
        timeout: Duration::from_millis(TIMEOUT_MS.get() as u64),
        bytes: max_bytes(),
        authorities: authorities(),
    };
    Client::new(rules, &limits).unwrap_or_else(|error| {
        raise(
            PgSqlErrorCode::ERRCODE_CONFIG_FILE_ERROR,
            format!("setting {AUTHORITIES_NAME}: {}", error.message),
        )
    })
}

fn text(name: &str, setting: &GucSetting<Option<CString>>) -> String {
    let value = setting.get().unwrap_or_default();
    value.into_string().unwrap_or_else(|_| {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("setting \"{name}\" is not valid UTF-8"),
        )
    })
}

fn authorities() -> Option<Vec<u8>> {
    let path = text(AUTHORITIES_NAME, &AUTHORITIES);
    if path.is_empty() {
        return None;
    }
    let pem = std::fs::read(&path).unwrap_or_else(|error| {
        raise_hint(
            PgSqlErrorCode::ERRCODE_CONFIG_FILE_ERROR,
            format!("could not read file \"{path}\": {error}"),
            format!("It is named by setting {AUTHORITIES_NAME}."),
        )
    });
    Some(pem)
}
