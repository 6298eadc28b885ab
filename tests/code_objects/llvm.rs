//! Parsers for the output of LLVM's tools.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::command::{limited, run};

/// The fields of one kernel, or directives of its descriptor, by name.
pub(crate) type Fields = BTreeMap<String, String>;

fn printed(tool: &str, arguments: &[&str], file: &Path) -> String {
    let mut command = limited(tool);
    command.args(arguments).arg(file);
    run(&mut command).success().stdout
}

/// Kernels of the metadata note in the YAML of `llvm-readelf --notes`. A kernel starts with a dash
/// in the third column; its own fields are in the fifth.
pub(crate) fn notes(file: &Path) -> Vec<Fields> {
    let text = printed("llvm-readelf-22", &["--notes"], file);
    let (_, kernels) = text
        .split_once("amdhsa.kernels:")
        .expect("the list of kernels");
    let mut list: Vec<Fields> = Vec::new();
    for line in kernels
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with(' '))
    {
        if line.starts_with("  - ") {
            list.push(Fields::new());
        }
        let is_own = |line: &&str| line.as_bytes().get(4) == Some(&b'.');
        if let Some(line) = Some(line).filter(is_own)
            && let Some((key, value)) = line[4..].split_once(':')
        {
            let value = value.trim().trim_matches('\'').to_owned();
            list.last_mut().expect("a kernel").insert(key.into(), value);
        }
    }
    list
}

/// The target in the metadata note.
pub(crate) fn target(file: &Path) -> Option<String> {
    let text = printed("llvm-readelf-22", &["--notes"], file);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("amdhsa.target:"))?;
    let target = line.trim().trim_matches('\'');
    Some(target.strip_prefix("amdgcn-amd-amdhsa--")?.to_owned())
}

/// The flags in the ELF header after the number: processor and features.
pub(crate) fn flags(file: &Path) -> Vec<String> {
    let text = printed("llvm-readelf-22", &["--file-header"], file);
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Flags:"));
    let words = line.expect("the flags").split(',').skip(1);
    words.map(|word| word.trim().to_owned()).collect()
}

/// Addresses of the symbols.
pub(crate) fn symbols(file: &Path) -> BTreeMap<String, u64> {
    let text = printed("llvm-readelf-22", &["--symbols", "--wide"], file);
    let symbol = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let address = u64::from_str_radix(words.get(1)?, 16).ok()?;
        Some((words.get(7)?.to_string(), address))
    };
    text.lines().filter_map(symbol).collect()
}

/// Address, size and name of the function symbols with a size, sorted.
pub(crate) fn functions(file: &Path) -> Vec<(u64, u64, String)> {
    let text = printed("llvm-readelf-22", &["--symbols", "--wide"], file);
    let (_, all) = text.split_once("'.symtab'").expect("all symbols");
    let symbol = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (address, size) = (*words.get(1)?, words.get(2)?.parse().ok()?);
        let is_function = *words.get(3)? == "FUNC" && size > 0;
        let address = u64::from_str_radix(address, 16).ok()?;
        is_function.then(|| (address, size, words[7].to_owned()))
    };
    let mut functions: Vec<_> = all.lines().filter_map(symbol).collect();
    functions.sort_unstable();
    functions
}

/// The directives that make each kernel's descriptor, by `llvm-objdump`.
pub(crate) fn descriptors(file: &Path) -> BTreeMap<String, Fields> {
    let names = symbols(file)
        .into_keys()
        .filter(|name| name.ends_with(".kd"));
    let mut descriptors = BTreeMap::new();
    let wanted = format!(
        "--disassemble-symbols={}",
        names.collect::<Vec<_>>().join(",")
    );
    let text = printed("llvm-objdump-22", &["-D", "-j", ".rodata", &wanted], file);
    for kernel in text.split(".amdhsa_kernel ").skip(1) {
        let (name, directives) = kernel.split_once('\n').expect("directives");
        let directives = directives.lines().map(str::trim);
        let fields = directives
            .filter_map(|line| line.strip_prefix(".amdhsa_")?.split_once(' '))
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        descriptors.insert(name.to_owned(), fields.collect());
    }
    descriptors
}

/// The first source file of each function with a coverage mapping, by llvm-cov.
pub(crate) fn sources(file: &Path) -> BTreeMap<String, String> {
    let text = printed("llvm-cov-22", &["export", "-empty-profile"], file);
    let export: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let functions = export["data"][0]["functions"]
        .as_array()
        .expect("the functions")
        .iter();
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    functions
        .map(|function| (text(&function["name"]), text(&function["filenames"][0])))
        .collect()
}
