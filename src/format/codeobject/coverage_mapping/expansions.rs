//! The counters of expansions. The format leaves them out: an expansion has the counter of the first region of
//! the file that it expands to, which may be an expansion itself.

use crate::format::codeobject::coverage_mapping::error::{CoverageError, MAX_NESTING};
use crate::format::codeobject::coverage_mapping::region::{Counter, MappedRegion, RegionKind};

/// Sets the counters of all expansions among the regions of a function with this number of files.
///
/// # Errors
/// Fails if a file leads to itself, or if there are too many expansions around the regions.
pub(super) fn set_counters(
    regions: &mut [MappedRegion],
    files: usize,
) -> Result<(), CoverageError> {
    let mut first = vec![None; files];
    let mut expansion = vec![None; files];
    for (index, region) in regions.iter().enumerate() {
        first[region.file as usize].get_or_insert(index);
        if let RegionKind::Expansion { file, .. } = region.kind {
            // If several expand to one file, only the last gets a counter, as in LLVM.
            expansion[file as usize] = Some(index);
        }
    }
    // Inner files come first: the counter of an expansion may be that of an expansion in its file.
    let depths = depths(regions, &expansion)?;
    // A key of a region has all expansions around it.
    let of_regions = regions.iter().map(|region| depths[region.file as usize]);
    let nesting = of_regions.chain(depths.iter().copied());
    if nesting.sum::<usize>() > MAX_NESTING {
        return Err(CoverageError::Nesting);
    }
    let mut by_depth: Vec<(u64, usize)> = depths
        .into_iter()
        .map(|depth| depth as u64)
        .zip(0..)
        .collect();
    // The sort is of numbers, because each other type that is sorted adds kilobytes to librocov.
    by_depth.sort_unstable();
    for (_, file) in by_depth.into_iter().rev() {
        if let (Some(first), Some(expansion)) = (first[file], expansion[file]) {
            let known = primary(regions[first].kind);
            if let RegionKind::Expansion { counter, .. } = &mut regions[expansion].kind {
                *counter = known;
            }
        }
    }
    Ok(())
}

/// The number of expansions around each file. `expansion` has the region that expands to a file.
fn depths(
    regions: &[MappedRegion],
    expansion: &[Option<usize>],
) -> Result<Vec<usize>, CoverageError> {
    let around = |file: usize| expansion[file].map(|region| regions[region].file as usize);
    let mut depths = vec![None; expansion.len()];
    for file in 0..expansion.len() {
        // The files on the way out to one whose depth is known.
        let mut way = Vec::new();
        let mut outer = Some(file);
        while let Some(file) = outer.filter(|file| depths[*file].is_none()) {
            if way.len() == expansion.len() {
                return Err(CoverageError::Nesting);
            }
            way.push(file);
            outer = around(file);
        }
        let first = outer
            .and_then(|file| depths[file])
            .map_or(0, |depth| depth + 1);
        for (depth, file) in (first..).zip(way.into_iter().rev()) {
            depths[file] = Some(depth);
        }
    }
    Ok(depths.into_iter().map(Option::unwrap_or_default).collect())
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
