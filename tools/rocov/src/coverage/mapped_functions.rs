//! Functions that some code has in its coverage mapping, and other code in its line table.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::function::{Function, Place, Span, symbol};
use crate::profdata::CountKinds;

/// The places of a file's functions, and their names, by symbol.
type InFile = BTreeMap<Box<str>, (Span, Arc<str>)>;

/// The functions with a coverage mapping, by file: their places, and their names in it.
#[derive(Debug, Default)]
pub(crate) struct MappedFunctions(HashMap<Arc<str>, InFile>);

impl MappedFunctions {
    /// Takes those of `functions`. None, if all code has counts of one kind.
    pub(crate) fn new<'a>(
        kinds: impl Iterator<Item = &'a CountKinds>,
        functions: impl Iterator<Item = &'a Arc<Function>>,
    ) -> Self {
        let mut mapped = Self::default();
        if kinds.flatten().collect::<BTreeSet<_>>().len() < 2 {
            return mapped;
        }
        for function in functions.filter(|function| function.line_table.is_none()) {
            let here = mapped.0.entry(Arc::clone(function.main_path()));
            let (start, end) = (function.start(), function.end());
            let found = (Span { start, end }, Arc::clone(&function.name));
            here.or_default()
                .insert(symbol(&function.name).into(), found);
        }
        mapped
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The start of a function and its name: those of its coverage mapping, if any code has one.
    pub(crate) fn key<'a>(&'a self, function: &'a Function) -> (Place, &'a str) {
        let own = (function.start(), &*function.name);
        let Some(here) = self.0.get(function.main_path()) else {
            return own;
        };
        if function.line_table.is_none() {
            return own;
        }
        match here.get(symbol(own.1)) {
            Some((span, name)) => (span.start, name),
            None => unqualified(here, own).unwrap_or(own),
        }
    }
}

/// The start and the name of the function with a coverage mapping that a start and a name without namespace and
/// parameters are of. The instances of a template start at one place; a name that fits several of them stays.
fn unqualified<'a>(here: &'a InFile, (start, name): (Place, &'a str)) -> Option<(Place, &'a str)> {
    let plain = name.split('<').next().unwrap_or(name);
    // As a mangled name has it: `_ZN2my5scaleEf` has `5scale`.
    let mangled = format!("{}{plain}", plain.len());
    let fits = |span: &Span| (span.start.line..=span.end.line).contains(&start.line);
    let mut found = here
        .iter()
        .filter(|(symbol, (span, _))| fits(span) && symbol.contains(&mangled))
        .map(|(_, (span, name))| (span.start, &**name));
    let first = found.next()?;
    let others: Vec<_> = found.collect();
    match others.iter().all(|(start, _)| *start == first.0) {
        true if others.is_empty() => Some(first),
        true => Some((first.0, name)),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::function::{Kind, LineTable, Location, Region};
    use super::*;
    use crate::profdata::CountKind;

    const FILE: &str = "/a.hip";

    fn function(name: &str) -> Function {
        Function {
            name: name.into(),
            filenames: vec![FILE.into()],
            ..Function::default()
        }
    }

    fn mapped(name: &str, lines: [u32; 2]) -> Arc<Function> {
        let [start, end] = lines.map(|line| Place { line, column: 9 });
        let location = Location {
            span: Span { start, end },
            file: 0,
            expanded: 0,
        };
        let kind = Kind::Code;
        Arc::new(Function {
            regions: vec![Region { location, kind }],
            ..function(name)
        })
    }

    #[test]
    fn a_name_without_namespace_is_of_the_function_around_its_lines() {
        let kinds = [CountKind::Mapping, CountKind::Trace].into();
        let functions = [
            mapped("_ZN2my5scaleEf", [3, 5]),
            mapped("_ZN5other5scaleEf", [13, 15]),
            mapped("_Z4foldIfEvT_", [23, 25]),
            mapped("_Z4foldIiEvT_", [23, 25]),
        ];
        let mapped = MappedFunctions::new([&kinds].into_iter(), functions.iter());
        for (name, line, expected) in [
            ("scale", 4, (3, "_ZN2my5scaleEf")),
            ("scale", 13, (13, "_ZN5other5scaleEf")),
            ("scale", 8, (8, "scale")),
            ("cale", 4, (4, "cale")),
            ("fold<float>", 24, (23, "fold<float>")),
            ("_Z4foldIiEvT_", 24, (23, "_Z4foldIiEvT_")),
        ] {
            let start = Place { line, column: 1 };
            let lines = Vec::new();
            let listed = Function {
                line_table: Some(LineTable { start, lines }),
                ..function(name)
            };
            let (start, name) = mapped.key(&listed);
            assert_eq!((start.line, name), expected);
        }
    }
}
