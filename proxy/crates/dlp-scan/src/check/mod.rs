//! Check digits and decodable structure, by the name that rule files use.
//!
//! Every function takes a candidate in compact form (letters upper case, separators gone) unless its section says
//! otherwise, and says whether it can be what it claims to be. Each cites the standard it implements.

mod americas;
mod asia;
mod dates;
mod europe;
mod mobiles;
mod money;
mod persons;
mod plates;
mod sums;
mod token;
mod vat;
mod world;

pub(crate) use money::{iban as is_iban, iban_len};
pub(crate) use persons::name_within;
pub(crate) use token::{base64_digit, base64_value};

/// Checks by name.
type Table = &'static [(&'static str, fn(&[u8]) -> bool)];

/// A named check.
#[derive(Clone, Copy)]
pub(crate) struct Check {
    pub name: &'static str,
    pub run: fn(&[u8]) -> bool,
    /// Takes the value as it stands, not in compact form.
    pub raw: bool,
    /// A checksum that no made-up value passes by chance (30 bits or more).
    pub proves: bool,
}

/// Checks that prove a value to be what it claims.
const PROOFS: [&str; 4] = ["github-crc", "base58check", "bech32", "btc-address"];

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The check of that name.
pub(crate) fn find(name: &str) -> Option<Check> {
    let tables: [(bool, Table); 8] = [
        (true, token::CHECKS),
        (true, persons::CHECKS),
        (false, money::CHECKS),
        (false, europe::CHECKS),
        (false, americas::CHECKS),
        (false, asia::CHECKS),
        (false, world::CHECKS),
        (false, plates::CHECKS),
    ];
    for (raw, table) in tables {
        if let Some((name, run)) = table.iter().find(|(n, _)| *n == name) {
            return Some(Check {
                name,
                run: *run,
                raw,
                proves: PROOFS.contains(name),
            });
        }
    }
    None
}

/// Letters upper case, everything but letters and digits gone. Long candidates are cut: no identifier has 64.
pub(crate) fn compact(value: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend(
        value
            .iter()
            .filter(|b| b.is_ascii_alphanumeric())
            .take(64)
            .map(u8::to_ascii_uppercase),
    );
}

/// Whether a value in compact form passes the check of that name.
fn passes(check: &str, compact: &[u8]) -> bool {
    find(check).is_some_and(|c| (c.run)(compact))
}

#[cfg(test)]
pub(crate) fn check_passes(check: &str, value: &str) -> bool {
    let check = find(check).unwrap_or_else(|| panic!("no check {check}"));
    let mut buf = Vec::new();
    compact(value.as_bytes(), &mut buf);
    (check.run)(if check.raw { value.as_bytes() } else { &buf })
}
