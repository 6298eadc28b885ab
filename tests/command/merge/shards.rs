//! One merge by many tasks: `--shard`, `--allow-empty` and `--if-exists`. llvm-profdata judges the sums.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rocov_tests::cli::{failure, run, stderr};

use crate::merge::Place;

/// Profiles of `processes` processes in two directories, with counts of 1, 2, 3 and so on. Returns the sum.
fn fleet(place: &Place, processes: u32) -> u64 {
    let elf = place.elf("gfx90a");
    for pid in 1..=processes {
        let directory = ["data/one", "data/two"][pid as usize % 2];
        place.profile(directory, &elf, pid, pid.into());
    }
    (1..=u64::from(processes)).sum()
}

/// Runs the tasks of a job array. Each merges its share into `pooled/TASK`.
fn array(place: &Place, tasks: u32) {
    for task in 0..tasks {
        let (shard, output) = (format!("{task}/{tasks}"), format!("pooled/{task}"));
        let arguments = [
            "data",
            "--shard",
            &shard,
            "--allow-empty",
            "--pooled",
            &output,
        ];
        let output = run(&mut place.command(&arguments));
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn shares_add_up_to_the_whole() {
    for tasks in [1, 3, 40] {
        let place = Place::new();
        let sum = fleet(&place, 12);
        array(&place, tasks);
        place.merged(&["pooled", "-o", "out"]);
        assert_eq!(place.calls("out/gfx90a.profdata"), sum, "{tasks} tasks");
        // The job runs a second time.
        array(&place, tasks);
        place.merged(&["pooled", "-o", "again"]);
        assert_eq!(place.calls("again/gfx90a.profdata"), sum, "{tasks} tasks");
    }
}

#[test]
fn an_empty_share_is_allowed_if_the_user_says_so() {
    let place = Place::new();
    let sum = fleet(&place, 2);
    fs::create_dir(place.path("nothing")).unwrap();
    let message = failure(&place.merge(&["nothing", "--pooled", "empty"]), 1);
    assert!(
        message.contains("no profile in the inputs") && message.contains("--allow-empty"),
        "{message}"
    );
    assert!(!place.path("empty").exists());
    place.merged(&["nothing", "--pooled", "empty", "--allow-empty"]);
    // It changes no sum, and can be replaced.
    for inputs in [["empty", "data"], ["data", "empty"]] {
        place.merged(&[&inputs[..], &["-o", "out"]].concat());
        assert_eq!(place.calls("out/gfx90a.profdata"), sum);
    }
    place.merged(&["data", "--pooled", "empty"]);
    // A missing input is not an empty one.
    let missing = place.merge(&["missing", "--pooled", "x", "--allow-empty"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("missing does not exist"));
    assert!(!place.path("x").exists());
}

#[test]
fn an_output_that_is_there_is_replaced_kept_or_refused() {
    let place = Place::new();
    let sum = fleet(&place, 2);
    for output in [["--pooled", "pooled"], ["-o", "out"]] {
        let merge = |mode: &str| place.merge(&["data", output[0], output[1], "--if-exists", mode]);
        for mode in ["keep", "fail", "replace"] {
            let _ = fs::remove_dir_all(place.path(output[1]));
            let made = merge(mode);
            assert_eq!(
                (made.status.code(), stderr(&made)),
                (Some(0), String::new())
            );
        }
        let kept = merge("keep");
        assert_eq!(kept.status.code(), Some(0));
        assert_eq!(
            stderr(&kept),
            format!(
                "rocov: {} exists, and was not changed: use --if-exists=replace to merge again\n",
                output[1]
            )
        );
        assert_eq!(
            failure(&merge("fail"), 1),
            format!(
                "rocov: {} exists: remove it, or use --if-exists=replace or --if-exists=keep\n",
                output[1]
            )
        );
        // The output is replaced by that of other inputs.
        let elf = place.path("gfx90a.elf");
        let added = place.profile("data/one", &elf, 99, 1000);
        let inode = fs::metadata(place.path(output[1])).unwrap();
        merge("keep");
        assert_eq!(
            fs::metadata(place.path(output[1]))
                .unwrap()
                .modified()
                .unwrap(),
            inode.modified().unwrap()
        );
        assert_eq!(merge("replace").status.code(), Some(0));
        place.merged(&[output[1], "-o", "sum"]);
        assert_eq!(place.calls("sum/gfx90a.profdata"), sum + 1000);
        fs::remove_file(added).unwrap();
    }
}

#[test]
fn a_pooled_directory_that_is_replaced_is_whole_at_any_time() {
    let place = Place::new();
    fleet(&place, 1);
    place.merged(&["data", "--pooled", "pooled"]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let profraw = place.path("pooled/profraw");
            while !is_over.load(Ordering::Relaxed) {
                // The directory that the path led to may go meanwhile, but the path always leads to one.
                assert!(profraw.exists());
            }
        });
        for _ in 0..20 {
            place.merged(&["data", "--pooled", "pooled"]);
        }
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
}

#[test]
fn a_share_that_does_not_exist() {
    let place = Place::new();
    for (shard, reason) in [
        (
            "3/3",
            "task 3 of 3: the first number is 0 or more, and less than the second",
        ),
        (
            "0/0",
            "task 0 of 0: the first number is 0 or more, and less than the second",
        ),
        ("1", "expected I/N, such as 0/32 for the first of 32 tasks"),
        (
            "-1/2",
            "expected I/N, such as 0/32 for the first of 32 tasks",
        ),
    ] {
        let shard = format!("--shard={shard}");
        let refused = place.merge(&["data", &shard, "--pooled", "x"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(reason), "{}", stderr(&refused));
    }
}
