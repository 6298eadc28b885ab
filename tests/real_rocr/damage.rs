//! Kernels can overwrite the description of their profile. rocov names the damaged part and leaves
//! it out; the rest is right.

use crate::programs::{Ran, WORK_ITEMS, object, part};
use crate::support::gpu::Stack;
use crate::support::profile::functions;

const INNOCENT: &str = "_Z8innocentPjj";
const DAMAGE_TABLE: &str = "_Z12damage_tablePjj";
const DAMAGE_RECORD: &str = "_Z13damage_recordPjj";

/// Launches the harmless kernel and then a damaging one. Passes the run and the functions with one
/// launch in the profile to `check`.
fn after(damage: &str, check: impl Fn(&Ran, &[&str])) {
    for stack in Stack::all() {
        let steps = format!("load launch:{INNOCENT} launch:{damage} sync");
        let ran = Ran::steps(stack, "gfx90a", &object("overwrite.hip", stack), &steps);
        let functions = functions(&ran.profile());
        let launched: Vec<&str> = functions
            .iter()
            .filter(|(_, function)| function.calls == WORK_ITEMS && function.blocks == [1])
            .map(|(name, _)| name.as_str())
            .collect();
        check(&ran, &launched);
    }
}

/// The only line on standard error names the code object's identity and its GPU, though rocov
/// drains a module that stays more than once.
fn names_the_code_object(ran: &Ran) {
    let lines: Vec<&str> = ran.ended.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{}", ran.ended);
    let identity = part(&ran.profile(), 1);
    let named = format!(" ({identity}) on gfx90a 0: ");
    assert!(lines[0].contains("://"), "no URI in {}", ran.ended);
    assert!(lines[0].contains(&named), "no {named:?} in {}", ran.ended);
}

#[test]
fn a_damaged_table_costs_nothing_where_there_is_the_elf() {
    // Words 2 and 3 are the bounds of the counters.
    after(&format!("{DAMAGE_TABLE}:2"), |ran, launched| {
        assert_eq!(launched, [DAMAGE_TABLE, INNOCENT], "{}", ran.ended);
        names_the_code_object(ran);
        let field = "__llvm_profile_sections places the counters section at 0x1234..";
        assert!(ran.ended.stderr.contains(field), "{}", ran.ended);
        assert!(ran.ended.stderr.contains("rocov uses the headers"));
    });
}

#[test]
fn a_damaged_record_is_left_out_and_the_others_stay() {
    after(&format!("{DAMAGE_RECORD}:0"), |ran, launched| {
        // The first record is that of the first function.
        assert_eq!(launched, [DAMAGE_RECORD], "{}", ran.ended);
        let names: Vec<_> = functions(&ran.profile()).into_keys().collect();
        assert_eq!(names, [DAMAGE_TABLE, DAMAGE_RECORD], "{}", ran.ended);
        names_the_code_object(ran);
        // 48 bytes of counters: three functions with two each.
        let claim = "claims 8000000 bytes at byte 0 of a counters section of 48 bytes";
        for words in ["record 0 (name hash 0x", claim, "its counts are left out"] {
            assert!(ran.ended.stderr.contains(words), "{words}: {}", ran.ended);
        }
    });
}
