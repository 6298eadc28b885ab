//! Large code objects: copies of all functions of another one, after it. Their functions are decoded one after the other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use byteorder::{ByteOrder, LittleEndian as Bytes};
use rocov::format::bundle;
use rocov::format::codeobject::CodeObject;
use rocov::instrument::amdgcn::{AmdgcnOptions, Helpers, Sharing, instrument, instrument_with};
use rocov_tests::compile::{clang, device_only};
use rocov_tests::unpacked::not_run;

use crate::copies::{SOURCE, launches};
use crate::run::{compare_made, processor_time};

/// The sizes of headers and symbols in a 64-bit ELF, and the offsets of fields (System V ABI).
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;
const PROGRAM_HEADERS_AT: usize = 32;
const SECTION_HEADERS_AT: usize = 40;
const PROGRAM_HEADER_COUNT: usize = 56;
const SECTION_HEADER_COUNT: usize = 60;
/// `PT_LOAD`, `PT_PHDR`, and `PF_R | PF_X`.
const LOAD: u32 = 1;
const PROGRAM_HEADER_TABLE: u32 = 6;
const READ_EXECUTE: u32 = 5;
/// `SHT_PROGBITS`, `SHT_SYMTAB`, and `SHF_ALLOC | SHF_EXECINSTR`.
const CONTENTS: u32 = 1;
const SYMBOLS: u32 = 2;
const CODE: u64 = 6;
/// `STT_FUNC`.
const FUNCTION: u8 = 2;
/// The bytes of a kernel descriptor, and the offset of the distance to its entry (LLVM's AMDGPUUsage).
const DESCRIPTOR: usize = 64;
const ENTRY: usize = 16;
const PAGE: usize = 4096;
/// Kernels start at multiples of it ("Kernel Descriptor" in LLVM's AMDGPUUsage).
const KERNEL: usize = 256;

/// The fields of a section header: type, flags, address, offset, size, and the number of a related section.
fn section(header: &[u8]) -> (u32, u64, [usize; 3], usize) {
    let long = |at: usize| Bytes::read_u64(&header[at..]);
    let places = [16, 24, 32].map(|at| long(at) as usize);
    let related = Bytes::read_u32(&header[40..]) as usize;
    (Bytes::read_u32(&header[4..]), long(8), places, related)
}

/// A code object with copies of all functions and kernel descriptors of another one: of some so many bytes.
fn grown(object: &[u8], bytes: usize) -> Vec<u8> {
    let long = |at: usize| Bytes::read_u64(&object[at..]) as usize;
    let short = |at: usize| usize::from(Bytes::read_u16(&object[at..]));
    let table = |at: usize, count: usize, size: usize| {
        let all = object[long(at)..].chunks_exact(size);
        let all: Vec<Vec<u8>> = all.take(short(count)).map(<[u8]>::to_vec).collect();
        all
    };
    let mut segments = table(PROGRAM_HEADERS_AT, PROGRAM_HEADER_COUNT, PROGRAM_HEADER);
    let mut sections = table(SECTION_HEADERS_AT, SECTION_HEADER_COUNT, SECTION_HEADER);
    let found = |is_wanted: &dyn Fn(u32, u64) -> bool| {
        sections.iter().position(|header| {
            let (kind, flags, ..) = section(header);
            is_wanted(kind, flags)
        })
    };
    let text = found(&|kind, flags| kind == CONTENTS && flags == CODE).expect("a text");
    let symbols_at = found(&|kind, _| kind == SYMBOLS).expect("a table of symbols");
    let (_, _, [text_address, text_offset, text_size], _) = section(&sections[text]);
    let (_, _, [_, symbols, symbols_size], strings_at) = section(&sections[symbols_at]);
    let (_, _, [_, strings, strings_size], _) = section(&sections[strings_at]);
    let name = |symbol: &[u8]| {
        let name = &object[strings + Bytes::read_u32(symbol) as usize..];
        let end = name.iter().position(|byte| *byte == 0).expect("its end");
        name[..end].to_vec()
    };
    let mut symbols = object[symbols..symbols + symbols_size].to_vec();
    let mut strings = object[strings..strings + strings_size].to_vec();
    let mut functions = Vec::new();
    let mut descriptors = Vec::new();
    for symbol in symbols.chunks_exact(SYMBOL) {
        let name = name(symbol);
        if symbol[4] & 15 == FUNCTION {
            functions.push((name, symbol.to_vec()));
        } else if name.ends_with(b".kd") {
            descriptors.push((name, symbol.to_vec()));
        }
    }
    // The descriptors of a copy, and its text.
    let head = (DESCRIPTOR * descriptors.len()).next_multiple_of(256);
    let copy = (head + text_size).next_multiple_of(KERNEL);
    let count = (bytes.saturating_sub(object.len()) / copy).max(1);
    let ends = segments
        .iter()
        .filter(|header| Bytes::read_u32(header) == LOAD);
    let top = ends.map(|header| Bytes::read_u64(&header[16..]) + Bytes::read_u64(&header[40..]));
    let start = top.max().expect("a segment").max(object.len() as u64) as usize;
    let start = start.next_multiple_of(PAGE);
    let mut out = Vec::with_capacity(start + count * copy + (count + 2) * strings_size);
    out.extend_from_slice(object);
    let mut add = |name: &[u8], number: usize, symbol: &[u8], address: usize| {
        let mut symbol = symbol.to_vec();
        Bytes::write_u32(&mut symbol, strings.len() as u32);
        Bytes::write_u64(&mut symbol[8..], address as u64);
        symbols.extend(symbol);
        strings.extend(format!("copy_{number}_").bytes());
        strings.extend_from_slice(name);
        strings.push(0);
    };
    for number in 0..count {
        let base = start + number * copy;
        let new_text = base + head;
        out.resize(base, 0);
        for (index, (name, symbol)) in descriptors.iter().enumerate() {
            let address = Bytes::read_u64(&symbol[8..]) as usize;
            let inside = sections.iter().find_map(|header| {
                let (_, flags, [first, offset, size], _) = section(header);
                let is_inside = flags & 2 != 0 && (first..first + size).contains(&address);
                is_inside.then_some(offset + address - first)
            });
            let offset = inside.expect("the section of a descriptor");
            let mut descriptor = object[offset..offset + DESCRIPTOR].to_vec();
            let entry = Bytes::read_u64(&descriptor[ENTRY..]).wrapping_add(address as u64);
            let new = base + DESCRIPTOR * index;
            let moved = entry + (new_text - text_address) as u64;
            Bytes::write_u64(&mut descriptor[ENTRY..], moved.wrapping_sub(new as u64));
            out.extend(descriptor);
            add(name, number, symbol, new);
        }
        out.resize(new_text, 0);
        out.extend_from_slice(&object[text_offset..text_offset + text_size]);
        for (name, symbol) in &functions {
            let address = Bytes::read_u64(&symbol[8..]) as usize;
            add(name, number, symbol, address + new_text - text_address);
        }
    }
    let size = (out.len() - start) as u64;
    segments.retain(|header| Bytes::read_u32(header) != PROGRAM_HEADER_TABLE);
    let loads = |header: &Vec<u8>| Bytes::read_u32(header) == LOAD;
    let last = segments.iter().rposition(loads).expect("a segment");
    let mut segment = vec![0; PROGRAM_HEADER];
    Bytes::write_u32(&mut segment, LOAD);
    Bytes::write_u32(&mut segment[4..], READ_EXECUTE);
    let start = start as u64;
    for (at, value) in [(8, start), (16, start), (24, start), (32, size), (40, size)] {
        Bytes::write_u64(&mut segment[at..], value);
    }
    Bytes::write_u64(&mut segment[48..], PAGE as u64);
    segments.insert(last + 1, segment);
    let mut code = sections[text].clone();
    for (at, value) in [(16, start), (24, start), (32, size)] {
        Bytes::write_u64(&mut code[at..], value);
    }
    let mut place = |header: &mut [u8], contents: &[u8]| {
        out.resize(out.len().next_multiple_of(8), 0);
        Bytes::write_u64(&mut header[24..], out.len() as u64);
        Bytes::write_u64(&mut header[32..], contents.len() as u64);
        out.extend_from_slice(contents);
    };
    place(&mut sections[symbols_at], &symbols);
    place(&mut sections[strings_at], &strings);
    sections.push(code);
    for (headers, at, count_at) in [
        (segments, PROGRAM_HEADERS_AT, PROGRAM_HEADER_COUNT),
        (sections, SECTION_HEADERS_AT, SECTION_HEADER_COUNT),
    ] {
        out.resize(out.len().next_multiple_of(8), 0);
        let place = out.len() as u64;
        Bytes::write_u64(&mut out[at..], place);
        Bytes::write_u16(&mut out[count_at..], headers.len() as u16);
        out.extend(headers.into_iter().flatten());
    }
    out
}

#[test]
fn functions_of_large_code_objects_count_as_others() {
    const SIZE: usize = 1 << 18;
    /// The times that threads were started.
    static STARTS: AtomicUsize = AtomicUsize::new(0);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("grown.hip");
    std::fs::write(&path, SOURCE).expect("a test can write into its directory");
    let spec = launches(directory.path());
    let object = device_only(clang(), &["gfx942"], 6)
        .arguments(["-O1"])
        .source(&path)
        .output("grown.gfx942");
    let object = std::fs::read(object).expect("the compiler's output");
    let object = grown(&object, SIZE);
    let helpers = Helpers {
        most: 2,
        beside: |most, help, work| {
            STARTS.fetch_add(1, Ordering::Relaxed);
            (Helpers::NONE.beside)(most, help, work);
        },
    };
    for sharing in [Sharing::Separate, Sharing::Shared] {
        let options = AmdgcnOptions {
            sharing,
            rounds: 3,
            at_once: 0,
            ..AmdgcnOptions::default()
        };
        let made = instrument_with(&object, &options, helpers).expect("a new code object");
        assert_ne!(STARTS.swap(0, Ordering::Relaxed), 0, "no threads help");
        let alone = instrument(&object, &options).expect("a new code object");
        assert!(made == alone, "threads that help change the result");
        compare_made(&[], "grown", &object, &made, &spec, &options);
    }
}

/// The most memory that this process has taken, in bytes.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the state of a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    let kibibytes: f64 = number
        .and_then(|number| number.parse().ok())
        .expect("a number");
    1024.0 * kibibytes
}

/// tools/dev/corpus sets the variables: a directory with a folder for each package, and megabytes.
#[test]
fn large_code_objects_take_little_more_memory_than_results() {
    let size = std::env::var("ROCOV_TEST_GROWN");
    let size = size.ok().and_then(|size| size.parse::<usize>().ok());
    let corpus = std::env::var_os("ROCOV_TEST_CORPUS");
    let (Some(size), Some(corpus)) = (size, corpus) else {
        not_run("no large code object is rewritten: run tools/dev/corpus large");
        return;
    };
    let library = std::path::Path::new(&corpus).join("rccl/usr/lib/x86_64-linux-gnu/librccl.so.1");
    let library = std::fs::read(library).expect("the library");
    // As many threads as librocov has.
    let helpers = Helpers::for_processors(Helpers::NONE.beside);
    for target in ["gfx90a", "gfx1100"] {
        let is_wanted = |image: &&bundle::DeviceImage<'_>| {
            let object = CodeObject::parse(&*image.bytes).ok();
            let found = object.and_then(|object| object.target().ok());
            found.is_some_and(|found| found.starts_with(target))
        };
        let images: Vec<_> = bundle::images(&library).flatten().collect();
        let image = images.iter().find(is_wanted).expect("its code object");
        for megabytes in [0, size / 4, size / 2, size] {
            let object = match megabytes {
                0 => image.bytes.to_vec(),
                _ => grown(&image.bytes, 1_000_000 * megabytes),
            };
            // The peak is now the memory in use, of which the library is a part.
            std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
            let before = peak() - object.len() as f64;
            let (start, processor) = (Instant::now(), processor_time());
            let made = instrument_with(&object, &AmdgcnOptions::default(), helpers);
            let made = made.expect("a new code object");
            let seconds = start.elapsed().as_secs_f64();
            let processor = processor_time() - processor;
            let (old, new, most) = (object.len() as f64, made.code.len() as f64, peak() - before);
            println!(
                "| {target} | {:.0} | {:.0} | {:.0} | {} | {seconds:.1} | {processor:.1} |",
                old / 1e6,
                new / 1e6,
                most / 1e6,
                1 + helpers.most,
            );
            // Only what each function needs by itself, and labels and branches, are there besides both code objects.
            assert!(most < 1.1 * (old + new) + 100e6, "{most} bytes");
        }
    }
}
