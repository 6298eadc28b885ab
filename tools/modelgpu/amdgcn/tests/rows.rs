//! Accesses of a wave to global memory whose lanes lie side by side, at one address, or apart, with any
//! number of active lanes. The expected values are plain copies.

use std::fs;

use modelgpu_amdgcn::{Argument, Launch, Program};
use modelgpu_testing::compile_hip;

/// Each item moves an element between places that are its number, in bits of a mask.
const SOURCE: &str = r#"
typedef unsigned v4 __attribute__((ext_vector_type(4)));
#define KERNEL(name, type) \
extern "C" __attribute__((global)) void name(const type *in, type *out, unsigned from, unsigned to) { \
  unsigned item = __builtin_amdgcn_workitem_id_x(); \
  out[item & to] = in[item & from]; \
}
KERNEL(copy1, unsigned char)
KERNEL(copy2, unsigned short)
KERNEL(copy4, unsigned)
KERNEL(copy8, unsigned long)
KERNEL(copy16, v4)
"#;

const ITEMS: usize = 64;
/// Bytes after the arrays.
const GUARD: usize = 64;

#[test]
fn rows_of_a_wave_are_copied_whole_and_alone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("rows.hip");
    fs::write(&source, SOURCE).expect("a writable file");
    for target in ["gfx90a", "gfx1100"] {
        let object = directory.path().join(target);
        let object = compile_hip(&source, target, &["-O1"], &object);
        let mut program = Program::load(&object).expect("an object that was just linked");
        for size in [1, 2, 4, 8, 16] {
            for items in [2, 3, 31, 32, 33, 63, 64] {
                // Side by side; pairs of lanes at one place; all at one place.
                for (from, to) in [(!0, !0), (!1, !0), (0, !0), (!0, !1), (!4, !8)] {
                    for shift in [0, size.min(4)] {
                        let copy = Copy {
                            size,
                            items,
                            from,
                            to,
                            shift,
                        };
                        assert_eq!(copy.on(&mut program), copy.expected(), "{target} {copy:?}");
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Copy {
    /// Bytes of an element.
    size: usize,
    items: usize,
    from: usize,
    to: usize,
    /// The bytes before both arrays.
    shift: usize,
}

impl Copy {
    fn input(self) -> Vec<u8> {
        (0..ITEMS * self.size + GUARD)
            .map(|place| (place * 29 + place / 256) as u8)
            .collect()
    }

    fn on(self, program: &mut Program) -> Vec<u8> {
        let input = program.arena_mut().allocate(&self.input());
        let output = program
            .arena_mut()
            .allocate(&vec![0xee; self.input().len()]);
        let mask = |mask: usize| Argument::Bytes((mask as u32).to_le_bytes().into());
        let launch = Launch {
            kernel: format!("copy{}", self.size),
            grid: [self.items as u32, 1, 1],
            block: [self.items as u32, 1, 1],
            dynamic_lds: 0,
            arguments: vec![
                Argument::Pointer(input + self.shift as u64),
                Argument::Pointer(output + self.shift as u64),
                mask(self.from),
                mask(self.to),
            ],
        };
        program.launch(&launch).expect("the kernel ends");
        let output = program.arena().read(output, self.input().len() as u64);
        output.expect("the output")
    }

    fn expected(self) -> Vec<u8> {
        let input = self.input();
        let mut output = vec![0xee; input.len()];
        for item in 0..self.items {
            let [from, to] =
                [self.from, self.to].map(|mask| (item & mask) * self.size + self.shift);
            output[to..to + self.size].copy_from_slice(&input[from..from + self.size]);
        }
        output
    }
}
