//! What kind of place an IP address is: public, private unless a rule says otherwise, or never reachable.
//!
//! Ranges are those of the IANA special-purpose address registries; the metadata addresses are those that cloud providers
//! document for their instances and containers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of an address, with words for a table cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressClass {
    Public,
    /// Blocked unless an address rule allows it.
    Private(&'static str),
    /// Blocked, and no rule lifts it.
    Never(&'static str),
}

use AddressClass::{Never, Private, Public};

const METADATA: &str = "cloud metadata";
const UNSPECIFIED: &str = "unspecified address";
const MULTICAST: &str = "multicast";
const BROADCAST: &str = "broadcast";
const LOOPBACK: &str = "loopback";
const LINK_LOCAL: &str = "link-local";
const PRIVATE: &str = "private network";
const SHARED: &str = "carrier-grade NAT";
const UNIQUE_LOCAL: &str = "unique local";
const RESERVED: &str = "reserved";

const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// Turns an IPv4-mapped IPv6 address into the IPv4 address that the kernel would dial; leaves all others alone.
#[must_use]
pub fn unwrap_mapped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// The IPv4 address that a translator or tunnel would send packets for `address` to, if it is of a form that carries one:
/// mapped, compatible, translated (RFC 6052 and its predecessors), NAT64 `64:ff9b::/96`, 6to4.
#[must_use]
pub fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let segments = address.segments();
    let low = Ipv4Addr::from((u32::from(segments[6]) << 16) | u32::from(segments[7]));
    match segments {
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => Some(low),
        [0, 0, 0, 0, 0, 0, _, _] if !address.is_unspecified() && !address.is_loopback() => Some(low),
        [0x2002, high, below, ..] => Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(below))),
        _ => None,
    }
}

/// Classifies the address that would be dialled; of an address inside an address, the stricter class counts.
#[must_use]
pub fn classify(address: IpAddr) -> AddressClass {
    match unwrap_mapped(address) {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(v6) => {
            let inner = embedded(address).map_or(Public, classify_v4);
            match (classify_v6(v6), inner) {
                (Never(kind), _) | (_, Never(kind)) => Never(kind),
                (Private(kind), _) | (_, Private(kind)) => Private(kind),
                (Public, Public) => Public,
            }
        }
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    if METADATA_V4.contains(&address) {
        return Never(METADATA);
    }
    match address.octets() {
        // "This network": the kernel takes 0.0.0.0 for the machine itself.
        [0, ..] => Never(UNSPECIFIED),
        [224..=239, ..] => Never(MULTICAST),
        [255, 255, 255, 255] => Never(BROADCAST),
        [127, ..] => Private(LOOPBACK),
        [169, 254, ..] => Private(LINK_LOCAL),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Private(PRIVATE),
        [100, 64..=127, ..] => Private(SHARED),
        [192, 0, 0, _]
        | [192, 0, 2, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => Private(RESERVED),
        _ => Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    if METADATA_V6.contains(&address) {
        return Never(METADATA);
    }
    if address.is_unspecified() {
        return Never(UNSPECIFIED);
    }
    if address.is_loopback() {
        return Private(LOOPBACK);
    }
    match address.segments() {
        [0xff00..=0xffff, ..] => Never(MULTICAST),
        [0xfe80..=0xfebf, ..] => Private(LINK_LOCAL),
        [0xfc00..=0xfdff, ..] => Private(UNIQUE_LOCAL),
        // NAT64: where it leads is the embedded address's affair.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => Public,
        // Protocol assignments (Teredo, ORCHID, benchmarking), documentation, 6to4.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] | [0x2002, ..] => Private(RESERVED),
        [0x2000..=0x3fff, ..] => Public,
        _ => Private(RESERVED),
    }
}
