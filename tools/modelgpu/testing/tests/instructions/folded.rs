//! Instructions of the LDS unit with a negative register, of which the offset makes the address: the cases of other
//! families, each with another register and offset for one place.

use crate::harness::Case;
use crate::{atomics, buffer, cdna4, lanes, memory, rdna, rdna4};

/// A register that no case uses.
const NEGATIVE: &str = "v55";

/// Patterns of lanes, and places from M0 on.
const WITHOUT_ADDRESS: [&str; 5] = [
    "ds_swizzle_b32",
    "ds_read_addtid_b32",
    "ds_write_addtid_b32",
    "ds_append",
    "ds_consume",
];

pub(crate) fn cases() -> Vec<Case> {
    let families = [
        atomics::cases(),
        buffer::cases(),
        cdna4::cases(),
        lanes::cases(),
        memory::cases(),
        rdna::cases(),
        rdna4::cases(),
    ];
    let mut cases: Vec<Case> = families.into_iter().flatten().collect();
    cases.retain(|case| {
        case.mnemonic.starts_with("ds_") && !WITHOUT_ADDRESS.contains(&case.mnemonic)
    });
    for case in &mut cases {
        assert!(!case.body.contains(NEGATIVE), "{}", case.body);
        let lines = case.body.lines().map(|line| folded(case.mnemonic, line));
        case.body = lines.collect::<Vec<_>>().join("\n");
    }
    cases
}

/// A line with another register and offset, if it is one of the instruction.
fn folded(mnemonic: &str, line: &str) -> String {
    let line = line.trim_start();
    let Some(operands) = line
        .strip_prefix(mnemonic)
        .and_then(|rest| rest.strip_prefix(' '))
    else {
        return line.to_owned();
    };
    let (operands, offsets) = match operands.find(" offset") {
        Some(place) => operands.split_at(place),
        None => (operands, ""),
    };
    let offset = |name: &str| {
        let text = offsets.split(' ').find_map(|part| part.strip_prefix(name));
        text.map_or(0, |text| match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).expect("a number"),
            None => text.parse().expect("a number"),
        })
    };
    let has_result = mnemonic.starts_with("ds_read")
        || mnemonic.contains("_rtn_")
        || mnemonic.contains("permute");
    let mut operands: Vec<&str> = operands.split(", ").collect();
    let address = std::mem::replace(&mut operands[usize::from(has_result)], NEGATIVE);
    let operands = operands.join(", ");
    let has_two = ["ds_read2", "ds_write2", "ds_wrxchg2"]
        .iter()
        .any(|family| mnemonic.starts_with(family));
    let (distance, offsets) = if has_two {
        let bytes = if mnemonic.ends_with("b64") { 8 } else { 4 };
        let stride = if mnemonic.contains("st64") { 64 } else { 1 };
        let [first, second] = ["offset0:", "offset1:"].map(|name| offset(name) + 0x80);
        (
            0x80 * bytes * stride,
            format!("offset0:{first} offset1:{second}"),
        )
    } else {
        (0x8000, format!("offset:{}", offset("offset:") + 0x8000))
    };
    format!(
        "v_add_u32 {NEGATIVE}, {:#x}, {address}
         {mnemonic} {operands} {offsets}",
        0u32.wrapping_sub(distance)
    )
}
