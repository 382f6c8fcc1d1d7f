//! Base58, the digits of addresses: digits, letters of both cases, and none that look alike.

use super::base::texty;
use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{Cell, How, Node, Span};

/// Longest run read as base58, which is one large number: its cost grows with the square. A longer one is over budget.
const BASE58_BYTES_MAX: usize = 4096;

/// One run; was it a text?
pub(super) fn base58(
    node: &Node,
    cell: &Cell,
    place: (usize, usize),
    spawn: &mut Spawner<'_>,
) -> bool {
    let source = &node.text[place.0..place.1];
    let has = |is: fn(&u8) -> bool| source.iter().any(is);
    if !has(u8::is_ascii_digit) || !has(u8::is_ascii_uppercase) || !has(u8::is_ascii_lowercase) {
        return false;
    }
    let Some(digits) = source
        .iter()
        .map(|b| base58_digit(*b))
        .collect::<Option<Vec<u32>>>()
    else {
        return false;
    };
    if !base58_begins_text(&digits) {
        return false;
    }
    if digits.len() > BASE58_BYTES_MAX {
        spawn.over.get_or_insert(crate::OverBudget::DecodedBytes);
        return true;
    }
    // Limbs of 64 bits, the lowest first; ten digits at a time, which fit into one.
    let mut limbs: Vec<u64> = Vec::with_capacity(source.len() / 10 + 1);
    for ten in digits.chunks(10) {
        let (scale, value) = ten
            .iter()
            .fold((1u64, 0u64), |(s, v), d| (s * 58, v * 58 + u64::from(*d)));
        let mut carry = u128::from(value);
        for limb in &mut limbs {
            carry += u128::from(*limb) * u128::from(scale);
            (*limb, carry) = (carry as u64, carry >> 64);
        }
        if carry > 0 {
            limbs.push(carry as u64);
        }
    }
    let bytes: Vec<u8> = limbs
        .iter()
        .rev()
        .flat_map(|limb| limb.to_be_bytes())
        .collect();
    let lead = bytes.iter().take_while(|b| **b == 0).count();
    let bytes = &bytes[lead..];
    if bytes.len() < 8 || !bytes.is_ascii() || !texty(bytes) {
        return false;
    }
    child_around(node, cell, Layer::Base58, place, spawn, |child| {
        child.push(bytes, Span::new(place.0, place.1), How::Atom);
        child.push(b" ", Span::new(place.1 - 1, place.1), How::Atom);
    });
    true
}

/// The first byte of a number in base 58, by its logarithm, before the number is worked out.
fn base58_begins_text(digits: &[u32]) -> bool {
    let (front, rest) = digits.split_at(digits.len().min(6));
    let front = front
        .iter()
        .fold(0.0, |n, digit| n * 58.0 + f64::from(*digit));
    let bits = front.log2() + rest.len() as f64 * 58_f64.log2();
    // A little less and a little more than what text begins with.
    let first = (bits % 8.0).exp2();
    (8.5..128.5).contains(&first)
}

fn base58_digit(b: u8) -> Option<u32> {
    let digit = match b {
        b'1'..=b'9' => b - b'1',
        b'A'..=b'H' => b - b'A' + 9,
        b'J'..=b'N' => b - b'J' + 17,
        b'P'..=b'Z' => b - b'P' + 22,
        b'a'..=b'k' => b - b'a' + 33,
        b'm'..=b'z' => b - b'm' + 44,
        _ => return None,
    };
    Some(u32::from(digit))
}
