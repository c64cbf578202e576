//! A client of http(s) servers, under the rules and bounds of the settings.

use std::ffi::CString;
use std::time::Duration;

use pgquad_remote::{Client, Limits, Rules};
use pgrx::{GucSetting, PgSqlErrorCode};

use crate::pg::error::{raise, raise_hint};
use crate::settings;

const ALLOWED_NAME: &str = "quad.http_allowed";
const NETWORKS_NAME: &str = "quad.http_private_networks";
const AUTHORITIES_NAME: &str = "quad.http_ca_file";

/// Largest answer in bytes.
pub fn max_bytes() -> u64 {
    settings::HTTP_MAX_SIZE.get() as u64 * 1024
}

/// A client under the rules of the settings.
pub fn client() -> Client {
    let allowed = text(ALLOWED_NAME, &settings::HTTP_ALLOWED);
    let networks = text(NETWORKS_NAME, &settings::HTTP_PRIVATE_NETWORKS);
    let rules = Rules::parse(&allowed, &networks).unwrap_or_else(|error| {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("setting {ALLOWED_NAME} or {NETWORKS_NAME}: {error}"),
        )
    });
    let limits = Limits {
        timeout: Duration::from_millis(settings::HTTP_TIMEOUT.get() as u64),
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
    let path = text(AUTHORITIES_NAME, &settings::HTTP_CA_FILE);
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
