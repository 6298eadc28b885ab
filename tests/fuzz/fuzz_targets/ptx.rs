//! PTX text: its blocks and lines, and the text with counters, which is PTX again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocov::format::ptx::Module;
use rocov::instrument::ptx::{PtxOptions, PtxRefusal, instrument};
use rocov::settings::Counting;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(error) => {
            let lines = text.split('\n').count();
            let said = error.to_string();
            let line = said.strip_prefix("line ").and_then(|rest| rest.split(' ').next());
            let line: usize = line.and_then(|number| number.parse().ok()).expect("it names the line");
            assert!((1..=lines).contains(&line), "{said}");
            return;
        }
    };
    for function in &module.functions {
        let lines = function.blocks.iter().map(|block| block.line);
        assert!(lines.is_sorted(), "blocks are in the order of the text");
        assert!(text.contains(function.text), "{}", function.symbol);
    }
    let reached = PtxOptions {
        counting: Counting::Reached,
        ..PtxOptions::default()
    };
    if let Ok(changed) = instrument(&module, &reached) {
        Module::parse(&changed).expect("the text with flags is PTX");
    }
    let counted = match instrument(&module, &PtxOptions::default()) {
        Ok(counted) => counted,
        Err(PtxRefusal::Target { .. } | PtxRefusal::AddressSize { .. } | PtxRefusal::Counts { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let again = Module::parse(&counted).expect("it is PTX");
    let symbols = |module: &Module<'_>| -> Vec<String> {
        let symbols = module.functions.iter().map(|function| function.symbol.to_owned());
        symbols.collect()
    };
    assert_eq!(symbols(&again), symbols(&module));
    for (old, new) in module.functions.iter().zip(&again.functions) {
        assert!(new.blocks.len() >= old.blocks.len(), "{}", old.symbol);
    }
});
