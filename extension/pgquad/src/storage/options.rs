//! Options of a new quad table, from the settings `quad.orders`, `quad.inner_fanout` and `quad.leaf_quads`.

use crate::pg::error::raise_hint;
use crate::settings;
use pgquad_btree::{Options, Order, OrderOptions};
use pgrx::{pg_sys, GucSetting, PgSqlErrorCode};
use std::ffi::CString;

/// The options that the settings ask for; an ERROR names the setting that cannot be used.
pub fn from_settings() -> Options {
    parse(
        &text(&settings::ORDERS),
        &text(&settings::INNER_FANOUT),
        &text(&settings::LEAF_QUADS),
    )
    .unwrap_or_else(|e| refuse(e))
}

fn refuse((setting, what): (&'static str, String)) -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("invalid {setting}: {what}"),
        "Orders are a list like 'spog,posg,ospg'; inner fanout and leaf quads are one number or one per order, 0 = what fits in a page.",
    )
}

fn text(setting: &GucSetting<Option<CString>>) -> String {
    setting
        .get()
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Parses the three settings; the error names the setting and the reason.
pub fn parse(
    orders: &str,
    fanout: &str,
    leaf_quads: &str,
) -> Result<Options, (&'static str, String)> {
    let orders: Vec<Order> = orders
        .split(',')
        .map(|o| {
            o.trim()
                .parse::<Order>()
                .map_err(|e| ("quad.orders", e.to_string()))
        })
        .collect::<Result<_, _>>()?;
    let fanout = numbers("quad.inner_fanout", fanout, orders.len())?;
    let leaf_quads = numbers("quad.leaf_quads", leaf_quads, orders.len())?;
    let options = Options {
        orders: orders
            .iter()
            .enumerate()
            .map(|(i, &order)| OrderOptions {
                order,
                inner_fanout: fanout[i],
                leaf_quads: leaf_quads[i],
            })
            .collect(),
    };
    options
        .check()
        .map_err(|e| ("quad table options", e.to_string()))?;
    Ok(options)
}

fn numbers(
    setting: &'static str,
    text: &str,
    orders: usize,
) -> Result<Vec<u32>, (&'static str, String)> {
    let list: Vec<u32> = text
        .split(',')
        .map(|n| {
            n.trim()
                .parse()
                .map_err(|_| (setting, format!("\"{}\" is not a number", n.trim())))
        })
        .collect::<Result<_, _>>()?;
    match list.len() {
        1 => Ok(vec![list[0]; orders]),
        n if n == orders => Ok(list),
        n => Err((setting, format!("{n} numbers for {orders} orders"))),
    }
}

/// Raises an error where a table cannot get these limits of pages (`None`: as they are).
pub fn check_change(table: pg_sys::Oid, inner_fanout: Option<&str>, leaf_quads: Option<&str>) {
    if let Some(old) = super::options_of(table) {
        changed(&old, None, inner_fanout, leaf_quads);
    }
}

/// The options of a table with some of them changed, each given as the setting of that name; an ERROR names what is
/// wrong.
pub fn changed(
    old: &Options,
    orders: Option<&str>,
    fanout: Option<&str>,
    leaf_quads: Option<&str>,
) -> Options {
    let list = |value: fn(&OrderOptions) -> String| {
        old.orders.iter().map(value).collect::<Vec<_>>().join(",")
    };
    // With other orders the limits of the old ones have no place to go to, unless they are all the same.
    let same_shape = orders.is_none();
    let keep = |value: fn(&OrderOptions) -> String| {
        let all = list(value);
        let first = old.orders.first().map(value).unwrap_or_default();
        if same_shape {
            all
        } else {
            first
        }
    };
    let orders = orders.map_or_else(|| list(|o| o.order.to_string()), str::to_owned);
    let fanout = fanout.map_or_else(|| keep(|o| o.inner_fanout.to_string()), str::to_owned);
    let leaf_quads = leaf_quads.map_or_else(|| keep(|o| o.leaf_quads.to_string()), str::to_owned);
    parse(&orders, &fanout, &leaf_quads).unwrap_or_else(|e| refuse(e))
}
