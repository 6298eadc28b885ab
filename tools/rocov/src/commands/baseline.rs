//! `rocov baseline`: stores the figures of a report, which later reports must reach.

use anyhow::Context;

use crate::cli::BaselineArguments;
use crate::coverage::{Baseline, baseline, misfit};
use crate::support::failure::failure;
use crate::support::time;
use crate::term::exit_status::CommandResult;
use crate::term::{exit_status, print};

/// Writes the file, unless a figure would drop.
pub(crate) fn baseline(arguments: &BaselineArguments) -> CommandResult {
    let file = &arguments.output;
    let is_there = file.exists();
    if is_there && !arguments.update {
        return Err(failure!(
            "{} exists", file.display();
            "use --update to raise its figures, or -o FILE to write another file"
        )
        .into());
    }
    let filters = &arguments.filters;
    let (objects, llvm_bin) = (&arguments.objects, arguments.llvm_bin.as_deref());
    let (mut view, idle) = filters.view(&arguments.inputs(), &[], objects, llvm_bin)?;
    print::warn(&idle);
    print::warn(&misfit::about_all(&view.misfits));
    if view.paths.is_empty() {
        return Err(failure!(
            "no source file is left to report: nothing was written";
            "check --include, --exclude, --exclude-function, --exclude-line and --arch"
        )
        .into());
    }
    print::warn(&view.add_components(&arguments.source_components()?));
    let today = time::day(time::report_time()?);
    let root = baseline::root(None);
    let mut stored = Baseline::new(&view, &root, &today);
    if is_there {
        let earlier = Baseline::read(file)?;
        let lowering = baseline::lowering(file, &arguments.inputs());
        let mut losses = earlier.losses(&stored, &lowering);
        let absent = earlier.absent_sources(&stored, &root, &lowering);
        losses.extend(absent.iter().cloned());
        if !losses.is_empty() && !arguments.allow_drop {
            for line in &losses {
                print::message(format_args!("gate: {line}"));
            }
            return Ok(exit_status::GATE_BROKEN);
        }
        stored = earlier.with(stored);
    }
    print::to_file_or_stdout(Some(file), |out| {
        stored.write(out).context("cannot write JSON")
    })?;
    print::lines(|out| {
        out.line(file.display())?;
        stored
            .summary()
            .try_for_each(|line| out.line(format_args!("  {line}")))
    })?;
    Ok(0)
}
