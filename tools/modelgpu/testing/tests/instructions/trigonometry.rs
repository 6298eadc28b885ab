//! v_trig_preop_f64: parts of 2/pi.

use crate::float::scaled;
use crate::harness::{Case, Want};
use crate::inputs::doubles;

/// A number between 0 and 8 with many bits after the point: the integer part, then 32 bits each.
type Fixed = Vec<u32>;

const DIGITS: usize = 44;

fn divided(number: &[u32], by: u32) -> Fixed {
    let mut rest = 0u64;
    number
        .iter()
        .map(|digit| {
            let all = rest << 32 | u64::from(*digit);
            rest = all % u64::from(by);
            (all / u64::from(by)) as u32
        })
        .collect()
}

/// Adds another number `times` (1 or -1) to `number`.
fn add(number: &mut [u32], other: &[u32], times: i64) {
    let mut carry = 0i64;
    for (digit, more) in number.iter_mut().zip(other).rev() {
        let sum = i64::from(*digit) + times * i64::from(*more) + carry;
        *digit = sum as u32;
        carry = sum >> 32;
    }
}

/// `factor` times the arc tangent of 1/n, by its series.
fn arc_tangent(factor: u32, n: u32) -> Fixed {
    let mut power = vec![0; DIGITS];
    power[0] = factor;
    power = divided(&power, n);
    let mut sum = power.clone();
    let mut odd = 1;
    while power.iter().any(|digit| *digit != 0) {
        power = divided(&power, n * n);
        odd += 2;
        add(
            &mut sum,
            &divided(&power, odd),
            if odd % 4 == 3 { -1 } else { 1 },
        );
    }
    sum
}

/// The first 1201 bits of 2/pi after the point, by long division; pi by Machin's formula.
fn two_over_pi() -> Vec<bool> {
    let mut pi = arc_tangent(16, 5);
    add(&mut pi, &arc_tangent(4, 239), -1);
    let mut rest = vec![0; DIGITS];
    rest[0] = 2;
    (0..1201)
        .map(|_| {
            // 2/pi is below 1, so the first bit is worth one half.
            pi = divided(&pi, 2);
            let fits = rest >= pi;
            if fits {
                add(&mut rest, &pi, -1);
            }
            fits
        })
        .collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let bits = two_over_pi();
    // The lane's number gives the part, and a multiple of it the angle's exponent.
    let case = |body: &str, exponent: fn(&[u64; 4], usize) -> u64| {
        let bits = bits.clone();
        Case::new("v_trig_preop_f64", body, doubles(), move |all, lane| {
            let exponent = exponent(&all[lane], lane);
            let part = lane as u64 % 32;
            let first = part * 53 + exponent.saturating_sub(1077);
            let whole = (first..first + 53).fold(0u64, |sum, place| {
                2 * sum + u64::from(bits.get(place as usize).copied().unwrap_or(false))
            });
            let scale = if exponent >= 1968 { 128 } else { 0 };
            Want::Double(scaled(whole as f64, scale - 53 - first as i32))
        })
    };
    vec![
        case("v_trig_preop_f64 v[10:11], v[2:3], v0", |all, _| {
            all[0] >> 52 & 0x7ff
        }),
        // From 1023 on in steps of 16, through all parts twice.
        case(
            "v_lshlrev_b32 v14, 24, v0
             v_add_u32 v15, 0x3ff00000, v14
             v_mov_b32 v14, 0
             v_trig_preop_f64 v[10:11], v[14:15], v0",
            |_, lane| 1023 + 16 * lane as u64,
        ),
    ]
}
