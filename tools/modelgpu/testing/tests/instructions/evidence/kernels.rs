//! Compiles the operations for the host and for a target, and runs them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use modelgpu_amdgcn::{Argument, Launch, LaunchError, Program, Target};
use modelgpu_testing::{is_rdna, text, tool};

use super::operations::{Number, Operation, Oracle, Space};
use crate::harness::{Inputs, LANES};
use crate::inputs::{doubles, halves, integers, singles};

/// Bytes of memory for each work-item.
const MEMORY: usize = 64;

/// The expected results of an operation: its value, if there is one, and the memory of each item.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) values: Vec<Option<u64>>,
    pub(crate) memory: Vec<u8>,
}

/// Inputs of a kind of numbers, without signaling NaN: LLVM's operations may quiet them or not.
pub(crate) fn inputs_of(number: Number) -> Inputs {
    let quiet16 = |bits: u64, exponent: u64, quiet: u64| {
        (0..4).fold(0, |all, place| {
            let half = bits >> (16 * place) & 0xffff;
            let is_nan = half & exponent == exponent && half & (quiet * 2 - 1) != 0;
            all | (if is_nan { half | quiet } else { half }) << (16 * place)
        })
    };
    let map = |inputs: Inputs, quieted: &dyn Fn(u64) -> u64| inputs.map(|lane| lane.map(quieted));
    match number {
        Number::Integer => integers(),
        Number::Half => map(halves(), &|bits| quiet16(bits, 0x7c00, 0x200)),
        Number::Bfloat => map(singles(), &|bits| {
            let halves = bits >> 16 & 0xffff | (bits & 0xffff) << 16;
            quiet16(halves, 0x7f80, 0x40)
        }),
        Number::Single => map(singles(), &|bits| {
            let low = bits as u32;
            let is_nan = f32::from_bits(low).is_nan();
            u64::from(if is_nan { low | 1 << 22 } else { low })
        }),
        Number::Double => map(doubles(), &|bits| {
            if f64::from_bits(bits).is_nan() {
                bits | 1 << 51
            } else {
                bits
            }
        }),
    }
}

/// The initial memory of all items.
fn initial() -> Vec<u8> {
    let places = 0..LANES * MEMORY;
    places
        .map(|place| (place * 89 + place / 61 * 7 + 3) as u8)
        .collect()
}

fn bytes_of(inputs: &Inputs) -> Vec<u8> {
    let words = inputs.iter().flatten();
    words.flat_map(|word| word.to_le_bytes()).collect()
}

const NUMBERS: [Number; 5] = [
    Number::Integer,
    Number::Half,
    Number::Bfloat,
    Number::Single,
    Number::Double,
];

/// Declarations, each once.
fn declarations(operations: &[&Operation]) -> String {
    let all: BTreeSet<&String> = operations
        .iter()
        .flat_map(|operation| &operation.declarations)
        .collect();
    all.into_iter().map(|line| format!("{line}\n")).collect()
}

/// Computes what the host's code of operations returns, by their places.
pub(crate) fn on_host(operations: &[Operation], directory: &Path) -> BTreeMap<usize, Wanted> {
    let own: Vec<(usize, &Operation)> = operations
        .iter()
        .enumerate()
        .filter(|(_, operation)| operation.oracle != Oracle::Folding)
        .collect();
    let all: Vec<&Operation> = own.iter().map(|(_, operation)| *operation).collect();
    let mut source = declarations(&all);
    let mut main = String::from(HOST);
    let mut table = String::new();
    for (number, operation) in &own {
        let (parameter, body) = match operation.oracle {
            Oracle::Memory(space) => {
                let pointer = format!("ptr addrspace({})", space.number());
                ("ptr %p, ", operation.body.replace(&pointer, "ptr"))
            }
            _ => ("ptr %memory, ", operation.body.clone()),
        };
        // Without the liberties that only the GPU's instructions need.
        let body = body
            .replace("afn ", "")
            .replace("arcp ", "")
            .replace("contract ", "");
        let _ = writeln!(
            source,
            "define i64 @op{number}({parameter}i64 %a, i64 %b, i64 %c, i64 %d) {{\n{body}\nret i64 %r\n}}"
        );
        let _ = writeln!(main, "operation op{number};");
        let place = NUMBERS.iter().position(|kind| *kind == operation.inputs);
        let _ = writeln!(table, "  {{op{number}, {}}},", place.expect("a kind"));
    }
    source += "!0 = !{}\n";
    let _ = write!(main, "static const entry entries[] = {{\n{table}}};\n{RUN}");
    let path = |name: &str| directory.join(name);
    std::fs::write(path("host.ll"), source).expect("a writable file");
    std::fs::write(path("host.c"), main).expect("a writable file");
    let quiet = ["-Wno-override-module", "-O1", "-ffp-contract=off"];
    let [ir, object, host, program] = ["host.ll", "host.o", "host.c", "host"].map(path);
    tool(
        "clang-22",
        &[&quiet[..], &["-c", text(&ir), "-o", text(&object)]].concat(),
    );
    let files = [text(&host), text(&object), "-lm", "-o", text(&program)];
    tool("clang-22", &[&quiet[..], &files].concat());
    let mut input: Vec<u8> = NUMBERS
        .iter()
        .flat_map(|kind| bytes_of(&inputs_of(*kind)))
        .collect();
    input.extend(initial());
    std::fs::write(path("input"), input).expect("a writable file");
    let output = Command::new(path("host"))
        .stdin(Stdio::from(
            std::fs::File::open(path("input")).expect("the input"),
        ))
        .output()
        .expect("the host's program can be run");
    assert!(
        output.status.success(),
        "the host's program: {}",
        output.status
    );
    let size = LANES * (8 + MEMORY);
    let results = output.stdout.chunks_exact(size).map(|result| {
        let (values, memory) = result.split_at(8 * LANES);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        Wanted {
            values: values
                .chunks_exact(8)
                .map(|bytes| Some(word(bytes)))
                .collect(),
            memory: memory.to_vec(),
        }
    });
    let places = own.iter().map(|(place, _)| *place);
    places.zip(results).collect()
}

/// The host's program, around its table of operations.
const HOST: &str = "
#include <stdio.h>
#include <string.h>
typedef unsigned long u64;
typedef u64 operation(void *, u64, u64, u64, u64);
typedef struct { operation *run; int kind; } entry;
/* Libraries of older compilers lack it. */
unsigned short bits_of(float value) {
  unsigned bits;
  memcpy(&bits, &value, 4);
  if (value != value) return bits >> 16 | 64;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
__bf16 __attribute__((weak)) __truncsfbf2(float value) {
  unsigned short bits = bits_of(value);
  __bf16 result;
  memcpy(&result, &bits, 2);
  return result;
}
";
const RUN: &str = "
static u64 inputs[5][64][4], values[64];
static __attribute__((aligned(64))) unsigned char initial[64][64], memory[64][64];
int main(void) {
  if (fread(inputs, sizeof inputs, 1, stdin) != 1 || fread(initial, sizeof initial, 1, stdin) != 1) return 1;
  for (unsigned n = 0; n < sizeof entries / sizeof *entries; n++) {
    memcpy(memory, initial, sizeof memory);
    for (int item = 0; item < 64; item++) {
      u64 *in = inputs[entries[n].kind][item];
      values[item] = entries[n].run(memory[item], in[0], in[1], in[2], in[3]);
    }
    fwrite(values, sizeof values, 1, stdout);
    fwrite(memory, sizeof memory, 1, stdout);
  }
  return 0;
}
";

/// Computes what LLVM folds of operations on constants, by their places.
pub(crate) fn by_folding(operations: &[Operation], directory: &Path) -> BTreeMap<usize, Wanted> {
    let own: Vec<(usize, &Operation)> = operations
        .iter()
        .enumerate()
        .filter(|(_, operation)| operation.oracle == Oracle::Folding)
        .collect();
    let all: Vec<&Operation> = own.iter().map(|(_, operation)| *operation).collect();
    let mut source = String::from("target triple = \"amdgcn-amd-amdhsa\"\n") + &declarations(&all);
    for (number, operation) in &own {
        let _ = writeln!(
            source,
            "define internal i64 @op{number}(i64 %a, i64 %b, i64 %c, i64 %d) alwaysinline {{\n{}\nret i64 %r\n}}",
            operation.body
        );
        for (item, [a, b, c, d]) in inputs_of(operation.inputs).into_iter().enumerate() {
            let arguments = [a, b, c, d]
                .map(|value| format!("i64 {}", value as i64))
                .join(", ");
            let _ = writeln!(
                source,
                "define i64 @of{number}_{item}() {{\n%r = call i64 @op{number}({arguments})\nret i64 %r\n}}"
            );
        }
    }
    let [from, to] = ["folded.ll", "constants.ll"].map(|name| directory.join(name));
    std::fs::write(&from, source).expect("a writable file");
    let passes = "-passes=always-inline,function(instcombine,instcombine)";
    tool(
        "opt-22",
        &["-S", "-mcpu=gfx942", passes, text(&from), "-o", text(&to)],
    );
    let folded = std::fs::read_to_string(&to).expect("opt's output");
    let mut results: BTreeMap<usize, Vec<Option<u64>>> = BTreeMap::new();
    for part in folded.split("define i64 @of").skip(1) {
        let (name, rest) = part.split_once("()").expect("a function's name");
        let (number, item) = name.split_once('_').expect("an operation and an item");
        let [number, item] = [number, item].map(|text| text.parse::<usize>().expect("a number"));
        let body = rest.split_once("{\n").map_or("", |(_, body)| body);
        let value = body.trim_start().strip_prefix("ret i64 ");
        let value = value.and_then(|rest| rest.lines().next()?.parse::<i64>().ok());
        let values = results.entry(number).or_insert_with(|| vec![None; LANES]);
        values[item] = value.map(|value| value as u64);
    }
    // A function that LLVM does not compute has few constants or none.
    results.retain(|_, values| 2 * values.iter().flatten().count() > LANES);
    let wanted = |values| Wanted {
        values,
        memory: initial(),
    };
    results
        .into_iter()
        .map(|(place, values)| (place, wanted(values)))
        .collect()
}

/// The kernel's source.
fn kernel(number: usize, operation: &Operation, target: Target, is_uniform: bool) -> String {
    let (space, place, name) = if is_uniform {
        (4, "workgroup", "uniform")
    } else {
        (1, "workitem", "op")
    };
    let mut source = format!(
        "define amdgpu_kernel void @{name}{number}(ptr addrspace({space}) noalias %in, ptr addrspace(1) noalias %out, ptr addrspace(1) noalias %mem) #0 {{\n\
         %id = call i32 @llvm.amdgcn.{place}.id.x()\n\
         %at = getelementptr [4 x i64], ptr addrspace({space}) %in, i32 %id\n"
    );
    for (place, value) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let _ = writeln!(
            source,
            "%at{value} = getelementptr i64, ptr addrspace({space}) %at, i32 {place}\n\
             %{value} = load i64, ptr addrspace({space}) %at{value}"
        );
    }
    let copies = |from: &str, to: &str, [from_space, to_space]: [u32; 2]| {
        format!(
            "%{from}.v = load <16 x i32>, ptr addrspace({from_space}) %{from}, align 16\n\
             store <16 x i32> %{from}.v, ptr addrspace({to_space}) %{to}, align 16\n"
        )
    };
    let mut after = String::new();
    if let Oracle::Memory(kind) = operation.oracle {
        source += "%mine = getelementptr [64 x i8], ptr addrspace(1) %mem, i32 %id\n";
        let hidden = |bits: u32, from: &str, to: &str| {
            let kind = kind.number();
            format!(
                "%{to}.i = ptrtoint ptr addrspace({kind}) %{from} to i{bits}\n\
                 %{to}.h = call i{bits} asm sideeffect \"\", \"=v,0,~{{memory}}\"(i{bits} %{to}.i)\n\
                 %{to} = inttoptr i{bits} %{to}.h to ptr addrspace({kind})\n"
            )
        };
        match kind {
            Space::Global => source += "%p = getelementptr i8, ptr addrspace(1) %mine, i32 0\n",
            Space::Flat => {
                source += "%f = addrspacecast ptr addrspace(1) %mine to ptr addrspace(0)\n";
                source += &hidden(64, "f", "p");
            }
            Space::Lds | Space::Scratch => {
                if kind == Space::Lds {
                    source += "%own = getelementptr [64 x i8], ptr addrspace(3) @lds, i32 %id\n";
                } else {
                    source += "%own = alloca [64 x i8], align 16, addrspace(5)\n";
                }
                source += &copies("mine", "own", [1, kind.number()]);
                source += &hidden(32, "own", "p");
                after += &hidden(32, "p", "back");
                after += &copies("back", "mine", [kind.number(), 1]);
            }
            Space::Buffer => {
                let control = match target {
                    _ if is_rdna(target) => 0x3002_7000,
                    _ => 0x0002_7000,
                };
                let _ = writeln!(
                    source,
                    "%whole = call ptr addrspace(7) @llvm.amdgcn.make.buffer.rsrc.p7.p1(ptr addrspace(1) %mem, i16 0, i64 4096, i32 {control})\n\
                     %offset = shl i32 %id, 6\n\
                     %p = getelementptr i8, ptr addrspace(7) %whole, i32 %offset"
                );
            }
        }
    }
    source
        + &operation.body
        + "\n"
        + &after
        + "%to = getelementptr i64, ptr addrspace(1) %out, i32 %id\n\
           store i64 %r, ptr addrspace(1) %to\nret void\n}\n"
}

/// Compiles operations for a target. Returns the code object.
pub(crate) fn compile(
    target: Target,
    operations: &[(usize, &Operation)],
    directory: &Path,
) -> Vec<u8> {
    let all: Vec<&Operation> = operations.iter().map(|(_, operation)| *operation).collect();
    let mut source = declarations(&all);
    source += "declare i32 @llvm.amdgcn.workitem.id.x()\ndeclare i32 @llvm.amdgcn.workgroup.id.x()\n\
               declare ptr addrspace(7) @llvm.amdgcn.make.buffer.rsrc.p7.p1(ptr addrspace(1), i16, i64, i32)\n\
               @lds = internal addrspace(3) global [4096 x i8] poison, align 16\n\
               attributes #0 = { \"amdgpu-flat-work-group-size\"=\"1,64\" }\n!0 = !{}\n";
    for (number, operation) in operations {
        source += &kernel(*number, operation, target, false);
        if operation.is_uniform {
            source += &kernel(*number, operation, target, true);
        }
    }
    let [from, to] = ["kernels.ll", "kernels.co"].map(|name| directory.join(name));
    std::fs::write(&from, source).expect("a writable file");
    let processor = format!("-mcpu={target}");
    let how = [
        "-x",
        "ir",
        "--target=amdgcn-amd-amdhsa",
        "-nogpulib",
        "-O1",
        "-Wno-override-module",
        &processor,
    ];
    tool(
        "clang-22",
        &[&how[..], &[text(&from), "-o", text(&to)]].concat(),
    );
    std::fs::read(&to).expect("clang's output")
}

/// Runs a kernel. Returns the values and the memory.
///
/// # Errors
/// Fails if the kernel faults.
pub(crate) fn results(
    program: &mut Program,
    name: &str,
    operation: &Operation,
) -> Result<(Vec<u64>, Vec<u8>), LaunchError> {
    let arena = program.arena_mut();
    let input = arena.allocate(&bytes_of(&inputs_of(operation.inputs)));
    let output = arena.allocate(&[0; 8 * LANES]);
    let memory = arena.allocate(&initial());
    let items = LANES as u32;
    let launch = Launch {
        kernel: name.to_owned(),
        grid: [items, 1, 1],
        block: [
            if name.starts_with("uniform") {
                1
            } else {
                items
            },
            1,
            1,
        ],
        dynamic_lds: 0,
        arguments: [input, output, memory].map(Argument::Pointer).to_vec(),
    };
    program.launch(&launch)?;
    let read = |address, bytes: usize| {
        program
            .arena()
            .read(address, bytes as u64)
            .expect("a buffer")
    };
    let values = read(output, 8 * LANES);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let values = values.chunks_exact(8).map(word).collect();
    Ok((values, read(memory, LANES * MEMORY)))
}

/// Returns the first item whose results are not the wanted ones.
pub(crate) fn difference(
    operation: &Operation,
    wanted: &Wanted,
    (values, memory): &(Vec<u64>, Vec<u8>),
) -> Option<usize> {
    let differs = |item: &usize| {
        let is_value =
            wanted.values[*item].is_none_or(|value| agrees(operation, value, values[*item]));
        let place = item * MEMORY..(item + 1) * MEMORY;
        !is_value || memory[place.clone()] != wanted.memory[place]
    };
    (0..LANES).find(differs)
}

/// Returns whether a result is the wanted one: any NaN is another one, and results may be near.
fn agrees(operation: &Operation, wanted: u64, found: u64) -> bool {
    if wanted == found {
        return true;
    }
    if operation.result == Number::Integer {
        return false;
    }
    let mask = if operation.bits == 64 {
        u64::MAX
    } else {
        (1 << operation.bits) - 1
    };
    (0..64 / operation.bits).all(|place| {
        let [wanted, found] = [wanted, found].map(|value| value >> (place * operation.bits) & mask);
        let infinity: u64 = match operation.result {
            Number::Half => 0x7c00,
            Number::Bfloat => 0x7f80,
            Number::Single => 0x7f80_0000,
            _ => 0x7ff0_0000_0000_0000,
        };
        let magnitude = mask >> 1;
        let is_nan = |value: u64| value & magnitude > infinity;
        if is_nan(wanted) || is_nan(found) {
            return is_nan(wanted) && is_nan(found);
        }
        if !operation.has_signed_zero && (wanted | found) & magnitude == 0 {
            return true;
        }
        wanted == found || operation.ulps > 0 && wanted.abs_diff(found) <= operation.ulps
    })
}
