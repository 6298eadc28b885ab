//! One kernel of one code object, with all that is known of it.

use std::collections::BTreeMap;

use rocov::format::codeobject::Kernel;
use rocov::format::registry::model::Document;
use serde::Serialize;

use super::measured::Measured;
use crate::cli::KernelsArguments;
use crate::coverage::Figure;
use crate::support::demangle::{REGION, demangle};

/// The start of the names of the kernels that HIP loads for its copies (device/blitcl.cpp in ROCclr).
const HIPS_OWN: &str = "__amd_rocclr_";

/// A row of the table, and an element of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// The target of its code object, with features: `gfx90a:xnack-`.
    pub(super) target: String,
    /// The identity of its code object.
    pub(super) code_object: String,
    /// The kernel as its code object describes it.
    #[serde(flatten)]
    pub(super) kernel: Kernel,
    /// The number of loads of its code object, in all processes.
    pub(super) loads: u64,
    /// The number of work-items that entered it; `None` without a profile.
    pub(super) count: Option<u64>,
    /// Its lines; `None` without a profile.
    pub(super) lines: Option<Figure>,
    /// The reason why reports leave it out, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) excluded: Option<String>,
}

/// The kernels of all code objects.
pub(super) fn rows(document: Document, measured: &Measured) -> Vec<Row> {
    let processes = document.processes.into_iter();
    let of_processes = processes.flat_map(|process| process.loads);
    let of_processes = of_processes.map(|load| (load.code_object, 1));
    let groups = document.groups.into_iter();
    let of_groups = groups.flat_map(|group| group.loads);
    let of_groups = of_groups.map(|load| (load.code_object, load.times));
    let mut loads: BTreeMap<String, u64> = BTreeMap::new();
    for (identity, times) in of_processes.chain(of_groups) {
        if let Some(identity) = identity {
            let all = loads.entry(identity).or_default();
            *all = all.saturating_add(times);
        }
    }
    let mut rows = Vec::new();
    for object in document.code_objects {
        let functions = measured.get(&object.identity);
        for mut kernel in object.kernels {
            let function = functions.and_then(|functions| functions.get(&kernel.name));
            kernel.display_name = kernel.display_name.or_else(|| demangle(&kernel.name));
            rows.push(Row {
                target: object.target.clone(),
                code_object: object.identity.clone(),
                loads: loads.get(&object.identity).copied().unwrap_or(0),
                count: function.map(|function| function.count),
                lines: function.map(|function| function.lines),
                excluded: function.and_then(|function| function.excluded.clone()),
                kernel,
            });
        }
    }
    rows
}

impl Row {
    /// The name for people, or the symbol if there is none.
    pub(super) fn name(&self) -> &str {
        let name = self.kernel.display_name.as_deref();
        name.unwrap_or(&self.kernel.name)
    }

    /// Returns whether the kernel belongs to HIP, not to the program.
    pub(super) fn is_hips_own(&self) -> bool {
        self.kernel.name.starts_with(HIPS_OWN)
    }

    /// Returns whether the kernel is for this target, with features or without.
    pub(super) fn is_for(&self, arch: &str) -> bool {
        self.target == arch || self.target.split(':').next() == Some(arch)
    }

    /// Returns whether its symbol or name matches, with its signature or without.
    pub(super) fn is_called(&self, glob: &glob::Pattern) -> bool {
        let names = [
            &self.kernel.name,
            self.name(),
            without_signature(self.name()),
        ];
        names.into_iter().any(|name| glob.matches(name))
    }

    /// Returns whether the filters let it through.
    pub(super) fn is_asked_for(&self, arguments: &KernelsArguments) -> bool {
        let (archs, names) = (&arguments.arch, &arguments.name);
        (archs.is_empty() || archs.iter().any(|arch| self.is_for(arch)))
            && (names.is_empty() || names.iter().any(|glob| self.is_called(glob)))
            && (!arguments.instrumented || self.kernel.instrumented)
            && (!arguments.uncovered || self.count == Some(0))
    }
}

/// The name that people use: `scale` for `void scale<float>(float*, int)`, and for its target regions.
fn without_signature(name: &str) -> &str {
    let name = name
        .split_once(REGION)
        .map_or(name, |(function, _)| function);
    // `(anonymous namespace)::` is not a list of parameters.
    let end = name.match_indices('(').map(|(at, _)| at);
    let mut end = end.filter(|at| !name[*at..].starts_with("(anonymous namespace)"));
    let name = &name[..end.next().unwrap_or(name.len())];
    let name = &name[..name.find('<').unwrap_or(name.len())];
    // A function template's name has its return type before it.
    name.rsplit_once(' ').map_or(name, |(before, last)| {
        if before.ends_with("(anonymous") {
            name
        } else {
            last
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_signature() {
        for (name, short) in [
            ("scale", "scale"),
            ("scale(float*, int, float)", "scale"),
            ("a::scale(int), target region at line 7", "a::scale"),
            ("main, target region at line 14", "main"),
            ("void clean<float>(float*, int)", "clean"),
            ("a::scale(void (*)(int))", "a::scale"),
            ("void a::fold<b<int>, 3>(b<int>*)", "a::fold"),
            (
                "(anonymous namespace)::scale(int)",
                "(anonymous namespace)::scale",
            ),
        ] {
            assert_eq!(without_signature(name), short, "{name}");
        }
    }
}
