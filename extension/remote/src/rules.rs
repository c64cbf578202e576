//! Which servers may be asked.

use std::fmt;
use std::net::IpAddr;

use ureq::http::Uri;

use crate::address::{is_public, Network};
use crate::error::{Error, ErrorKind};

/// The servers that may be asked, and the networks besides the public internet that they may be in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    servers: Vec<Pattern>,
    networks: Vec<Network>,
}

/// An entry of a list that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesError {
    /// The entry.
    pub entry: String,
    /// What an entry looks like.
    pub expected: &'static str,
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not {}", self.entry, self.expected)
    }
}

/// `[scheme://]host[:port]`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    /// `None`: http and https.
    scheme: Option<String>,
    host: Host,
    port: Port,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Any,
    /// Hosts whose name ends so; with the dot.
    Below(String),
    Name(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    /// That of the scheme.
    Default,
    Any,
    Number(u16),
}

impl Rules {
    /// Reads the patterns of servers and the networks, each a list separated by commas or white space.
    ///
    /// # Errors
    /// An entry that cannot be read.
    pub fn parse(servers: &str, networks: &str) -> Result<Self, RulesError> {
        Ok(Self {
            servers: entries(
                servers,
                "a server, as [http[s]://]host[:port]",
                Pattern::parse,
            )?,
            networks: entries(networks, "an IP address or network", Network::parse)?,
        })
    }

    /// Whether no server may be asked.
    #[must_use]
    pub fn allow_nothing(&self) -> bool {
        self.servers.is_empty()
    }

    /// Refuses addresses that are not of the web or of no server in the list.
    pub(crate) fn check(&self, uri: &Uri) -> Result<(), Error> {
        let url = uri.to_string();
        let bad = |message: &str| Error::new(ErrorKind::Address, &url, message);
        let scheme = uri.scheme_str().unwrap_or_default();
        let default = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(bad("not an http or https address")),
        };
        let authority = uri.authority().ok_or_else(|| bad("no server is named"))?;
        if authority.as_str().contains('@') {
            return Err(bad("user names within the address are not supported"));
        }
        let host = authority.host();
        if host.is_empty() {
            return Err(bad("no server is named"));
        }
        let port = authority.port_u16().unwrap_or(default);
        if self
            .servers
            .iter()
            .any(|pattern| pattern.matches(scheme, host, port, default))
        {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::NotAllowed,
            &url,
            format!("requests to {host} port {port} are not allowed"),
        ))
    }

    /// Whether the address may be connected to.
    pub(crate) fn allow_address(&self, address: IpAddr) -> bool {
        is_public(address) || self.networks.iter().any(|n| n.contains(address))
    }
}

fn entries<T>(
    list: &str,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, RulesError> {
    list.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            parse(entry).ok_or_else(|| RulesError {
                entry: entry.to_owned(),
                expected,
            })
        })
        .collect()
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (Some(scheme.to_owned()), rest),
            Some(_) => return None,
            None => (None, text.as_str()),
        };
        // The colons of an IPv6 address stand in brackets.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (rest, None),
        };
        let port = match port {
            None => Port::Default,
            Some("*") => Port::Any,
            Some(number) => Port::Number(number.parse().ok()?),
        };
        let host = match host.strip_prefix('*') {
            Some("") => Host::Any,
            Some(below) if below.starts_with('.') && is_name(&below[1..]) => {
                Host::Below(below.to_owned())
            }
            None if is_name(host) || is_ipv6(host) => Host::Name(host.to_owned()),
            _ => return None,
        };
        Some(Self { scheme, host, port })
    }

    fn matches(&self, scheme: &str, host: &str, port: u16, default: u16) -> bool {
        let host = host.to_ascii_lowercase();
        self.scheme.as_deref().is_none_or(|s| s == scheme)
            && match &self.host {
                Host::Any => true,
                Host::Below(end) => host.ends_with(end.as_str()) && host.len() > end.len(),
                Host::Name(name) => *name == host,
            }
            && match self.port {
                Port::Default => port == default,
                Port::Any => true,
                Port::Number(number) => port == number,
            }
    }
}

fn is_name(host: &str) -> bool {
    !host.is_empty()
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

fn is_ipv6(host: &str) -> bool {
    host.strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(servers: &str, url: &str) -> bool {
        let rules = Rules::parse(servers, "").unwrap();
        rules.check(&url.parse().unwrap()).is_ok()
    }

    #[test]
    fn patterns() {
        let matching = [
            ("example.org", "http://example.org/sparql"),
            ("example.org", "https://EXAMPLE.org/"),
            ("example.org", "https://example.org:443/"),
            ("Example.org", "http://example.org/"),
            ("example.org:8080", "http://example.org:8080/"),
            ("example.org:*", "http://example.org:8080/"),
            ("https://example.org", "https://example.org/"),
            ("*.example.org", "http://a.b.example.org/"),
            ("*", "http://anything/"),
            ("a, b\n c", "http://c/"),
            ("[::1]:80", "http://[::1]/"),
            ("127.0.0.1", "http://127.0.0.1/"),
        ];
        for (servers, url) in matching {
            assert!(allowed(servers, url), "{servers} {url}");
        }
        let not_matching = [
            ("", "http://example.org/"),
            ("example.org", "http://example.org:8080/"),
            ("example.org", "http://a.example.org/"),
            ("example.org", "http://example.org.evil.com/"),
            ("example.org", "http://evil.com/?example.org"),
            ("example.org", "http://example.org@evil.com/"),
            ("*.example.org", "http://example.org/"),
            ("*.example.org", "http://evilexample.org/"),
            ("https://example.org", "http://example.org/"),
            ("*", "ftp://example.org/"),
            ("*", "http://user:secret@example.org/"),
        ];
        for (servers, url) in not_matching {
            assert!(!allowed(servers, url), "{servers} {url}");
        }
    }

    #[test]
    fn bad_entries() {
        for bad in [
            "a b:c", "ftp://a", "*a", "a*b", "a/b", "http://", "[::1", "a:99999",
        ] {
            assert!(Rules::parse(bad, "").is_err(), "{bad}");
        }
        let error = Rules::parse("a", "127.0.0.1, 10.0.0.0/99").unwrap_err();
        assert_eq!(error.entry, "10.0.0.0/99");
    }
}
