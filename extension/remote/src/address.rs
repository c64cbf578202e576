//! Which IP addresses are those of public servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses: `10.0.0.0/8`, `fc00::/7`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    prefix: u8,
}

impl Network {
    /// Reads an address with an optional prefix length.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse().ok()?)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().ok()?;
        let longest = if first.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(longest);
        (prefix <= longest).then_some(Self { first, prefix })
    }

    /// Whether the address is one of the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same_prefix(
                u128::from(a.to_bits()) << 96,
                u128::from(b.to_bits()) << 96,
                self.prefix,
            ),
            (IpAddr::V6(a), IpAddr::V6(b)) => same_prefix(a.to_bits(), b.to_bits(), self.prefix),
            _ => false,
        }
    }
}

fn same_prefix(a: u128, b: u128, prefix: u8) -> bool {
    prefix == 0 || (a ^ b) >> (128 - u32::from(prefix)) == 0
}

/// Ranges that are not part of the public internet (IANA special-purpose registries), IPv4.
const SPECIAL_4: [([u8; 4], u8); 15] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// The same for IPv6: only 2000::/3 is assigned, and these are special within it.
const SPECIAL_6: [([u16; 8], u8); 3] = [
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// Whether the address can be that of a public server. IPv6 addresses that stand for an IPv4 address are judged by
/// that.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_4.iter().any(|(first, prefix)| {
            Network {
                first: Ipv4Addr::from(*first).into(),
                prefix: *prefix,
            }
            .contains(address.into())
        }),
        IpAddr::V6(address) => is_public_6(address),
    }
}

fn is_public_6(address: Ipv6Addr) -> bool {
    let within = |first: [u16; 8], prefix| {
        Network {
            first: Ipv6Addr::from(first).into(),
            prefix,
        }
        .contains(address.into())
    };
    let s = address.segments();
    let embedded = |high: u16, low: u16| {
        is_public(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into())
    };
    if address.to_ipv4_mapped().is_some() || within([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96) {
        return embedded(s[6], s[7]);
    }
    if s[0] == 0x2002 {
        return embedded(s[1], s[2]);
    }
    within([0x2000, 0, 0, 0, 0, 0, 0, 0], 3)
        && !SPECIAL_6
            .iter()
            .any(|(first, prefix)| within(*first, *prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_and_other_addresses() {
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.128.0.0",
            "172.32.0.1",
            "192.167.255.255",
            "223.255.255.255",
            "2600::1",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for other in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn networks() {
        let within = |network: &str, address: &str| {
            Network::parse(network)
                .unwrap()
                .contains(address.parse().unwrap())
        };
        assert!(within("10.0.0.0/8", "10.255.0.1"));
        assert!(!within("10.0.0.0/8", "11.0.0.1"));
        assert!(within("127.0.0.1", "127.0.0.1"));
        assert!(!within("127.0.0.1", "127.0.0.2"));
        assert!(!within("127.0.0.1", "::ffff:127.0.0.1"));
        assert!(within("fc00::/7", "fd00::1"));
        assert!(within("0.0.0.0/0", "1.2.3.4"));
        assert!(!within("0.0.0.0/0", "::1"));
        for bad in ["", "10", "10.0.0.0/33", "10.0.0.0/", "::/129", "host"] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
    }
}
