//! The counters of expansions. The format leaves them out: an expansion has the counter of the first region of
//! the file that it expands to, which may be an expansion itself.

use crate::format::codeobject::coverage_mapping::region::{Counter, MappedRegion, RegionKind};

/// Sets the counters of all expansions among the regions of a function with this number of files.
pub(super) fn set_counters(regions: &mut [MappedRegion], files: usize) {
    let mut first = vec![None; files];
    let mut expansion = vec![None; files];
    for (index, region) in regions.iter().enumerate() {
        first[region.file as usize].get_or_insert(index);
        if let RegionKind::Expansion { file, .. } = region.kind {
            // If several expand to one file, only the last gets a counter, as in LLVM.
            expansion[file as usize] = Some(index);
        }
    }
    let mut is_done = vec![false; files];
    for file in 0..files {
        // The way from this file to one whose counter is known.
        let mut way = Vec::new();
        let mut next = Some(file);
        while let Some(file) = next.filter(|file| !is_done[*file]) {
            // A file that leads to itself is damage. Its counter is 0.
            is_done[file] = true;
            let Some(region) = expansion[file].and(first[file]) else {
                break;
            };
            way.push((file, region));
            next = match regions[region].kind {
                RegionKind::Expansion { file: inner, .. }
                    if expansion[inner as usize] == Some(region) =>
                {
                    Some(inner as usize)
                }
                _ => None,
            };
        }
        for (file, first) in way.into_iter().rev() {
            let known = primary(regions[first].kind);
            if let Some(RegionKind::Expansion { counter, .. }) =
                expansion[file].map(|index| &mut regions[index].kind)
            {
                *counter = known;
            }
        }
    }
}

/// The counter of a region that counts for the region around it.
fn primary(kind: RegionKind) -> Counter {
    match kind {
        RegionKind::Code(counter)
        | RegionKind::Gap(counter)
        | RegionKind::Expansion { counter, .. }
        | RegionKind::Branch([counter, _])
        | RegionKind::Condition {
            sides: [counter, _],
            ..
        } => counter,
        RegionKind::Skipped | RegionKind::Decision { .. } => Counter::Zero,
    }
}
