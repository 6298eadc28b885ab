//! All kernels of testdata/kernels.

use rocov::instrument::amdgcn::{AmdgcnOptions, Sharing};
use rocov::support::counting::Counting;
use rocov_tests::artifacts::{files_with_extension, repository};
use rocov_tests::compile::{clang, device_only, has_all_levels, kernel_source};
use rocov_tests::spec::expand;

use crate::run::compare;

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// The most instructions with counters at the last level, for each one without.
const MOST: f64 = 1.35;
/// The most of them with marks of what was reached.
const MOST_REACHED: f64 = 1.15;

/// Compares the kernels of every source at each level. Returns for each level the number of kernels, and the geometric mean
/// of their executed instructions divided by those without counters.
fn compare_all(
    target: &str,
    flags: &[&str],
    name: &str,
    options: AmdgcnOptions,
) -> [(usize, f64); 4] {
    let is_rdna = target.starts_with("gfx1");
    let has_all = has_all_levels();
    let mut wrong = Vec::new();
    let mut ratios = Vec::new();
    for (place, source) in files_with_extension("testdata/kernels", "hip")
        .iter()
        .enumerate()
    {
        let kernel = source
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        // RDNA has no such matrix instructions, and one source counts on waves of 64.
        let is_foreign = is_rdna && (kernel == "mfma" || kernel == "wave" && flags.is_empty());
        // With few rounds, its 40 loops bring hundreds of counters to memory in each turn: that takes the model minutes.
        let is_endless = kernel == "spins" && options.rounds < 1 << 16;
        if is_foreign || is_endless {
            continue;
        }
        for (number, level) in LEVELS.iter().enumerate() {
            if !has_all && number != place % 2 * 3 {
                continue;
            }
            let object = device_only(clang(), &[target], 6)
                .arguments([*level])
                .arguments(flags.iter().copied())
                .source(kernel_source(&kernel))
                .output(&format!("{kernel}.plain.{name}{level}"));
            let directory = tempfile::tempdir().expect("a temporary directory");
            let spec = repository("testdata/kernels").join(format!("{kernel}.spec"));
            let spec = expand(&spec, directory.path());
            let object = std::fs::read(object).expect("the compiler's output");
            let title = format!("{kernel} {name} {level}");
            let result = std::panic::catch_unwind(|| compare(&title, &object, &spec, &options));
            match result {
                Ok((plain, rewritten)) => {
                    let ratio = rewritten as f64 / plain as f64;
                    ratios.push((ratio, title));
                }
                Err(_) => wrong.push(title),
            }
        }
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let means = LEVELS.map(|level| {
        let of_level = ratios.iter().filter(|(_, title)| title.ends_with(level));
        let logarithms: Vec<f64> = of_level.map(|(ratio, _)| ratio.ln()).collect();
        let count = logarithms.len();
        let mean = (logarithms.into_iter().sum::<f64>() / count.max(1) as f64).exp();
        println!("{name} {level}: {count} kernels, geometric mean {mean:.3}");
        (count, mean)
    });
    for (ratio, title) in &ratios {
        println!("  {ratio:.3} {title}");
    }
    assert!(wrong.is_empty(), "wrong: {wrong:?}");
    means
}

/// Compares them with the options that programs run with.
fn count_as_traced(target: &str, flags: &[&str], name: &str) {
    let means = compare_all(target, flags, name, AmdgcnOptions::default());
    require(name, means, MOST);
}

/// Requires that the kernels of the last level take at most so many instructions.
fn require(name: &str, [.., (count, mean)]: [(usize, f64); 4], most: f64) {
    // A part of the kernels has another mean.
    if has_all_levels() {
        assert!(count > 25, "{count}");
        assert!(mean <= most, "{name}: {mean:.3}");
    }
}

#[test]
fn kernels_count_as_traced_on_gfx90a() {
    count_as_traced("gfx90a", &[], "gfx90a");
}

#[test]
fn kernels_count_as_traced_on_gfx942() {
    count_as_traced("gfx942", &[], "gfx942");
}

#[test]
fn kernels_count_as_traced_on_gfx950() {
    count_as_traced("gfx950", &[], "gfx950");
}

#[test]
fn kernels_count_as_traced_on_gfx1100() {
    count_as_traced("gfx1100", &[], "gfx1100");
}

#[test]
fn kernels_count_as_traced_on_gfx1100_in_waves_of_64() {
    count_as_traced("gfx1100", &["-mwavefrontsize64"], "gfx1100-wave64");
}

#[test]
fn kernels_count_as_traced_on_gfx1201() {
    count_as_traced("gfx1201", &[], "gfx1201");
}

#[test]
fn waves_that_go_on_bring_their_counts_to_memory() {
    for rounds in [1, 2, 7] {
        let options = AmdgcnOptions {
            rounds,
            ..AmdgcnOptions::default()
        };
        compare_all("gfx942", &[], "gfx942", options);
        compare_all("gfx1100", &[], "gfx1100", options);
    }
    // RDNA 4 has hazards of its own there.
    let options = AmdgcnOptions {
        rounds: 2,
        ..AmdgcnOptions::default()
    };
    compare_all("gfx1201", &[], "gfx1201", options);
}

#[test]
fn functions_that_share_registers_count_as_traced() {
    for sharing in [Sharing::Shared, Sharing::Borrowed] {
        let options = AmdgcnOptions {
            sharing,
            ..AmdgcnOptions::default()
        };
        for target in ["gfx90a", "gfx942", "gfx1100", "gfx1201"] {
            compare_all(target, &[], target, options);
        }
    }
}

#[test]
fn kernels_reach_what_the_trace_has() {
    let options = AmdgcnOptions {
        counting: Counting::Reached,
        ..AmdgcnOptions::default()
    };
    for target in ["gfx90a", "gfx942", "gfx1100", "gfx1201"] {
        let means = compare_all(target, &[], target, options);
        require(target, means, MOST_REACHED);
    }
    if !has_all_levels() {
        return;
    }
    let means = compare_all("gfx950", &[], "gfx950", options);
    require("gfx950", means, MOST_REACHED);
    let means = compare_all("gfx1100", &["-mwavefrontsize64"], "gfx1100-wave64", options);
    require("gfx1100-wave64", means, MOST_REACHED);
}

#[test]
fn functions_that_share_registers_reach_what_the_trace_has() {
    let options = AmdgcnOptions {
        counting: Counting::Reached,
        sharing: Sharing::Shared,
        ..AmdgcnOptions::default()
    };
    let targets: &[&str] = match has_all_levels() {
        true => &["gfx90a", "gfx942", "gfx1100", "gfx1201"],
        false => &["gfx942", "gfx1100"],
    };
    for target in targets {
        compare_all(target, &[], target, options);
    }
}
