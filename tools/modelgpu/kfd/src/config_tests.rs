//! Good and bad values of the environment variables.

use rocov::settings::{DefaultValue, Reader, SETTINGS};

use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Option<Config>, String> {
    Config::read(|name| {
        variables
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.into())
    })
    .map_err(|error| error.to_string())
}

fn gpus(value: &str) -> Vec<Target> {
    read(&[("ROCOV_MODELGPU", value)]).unwrap().unwrap().gpus
}

#[test]
fn no_variable_or_an_empty_one_means_no_model() {
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[("ROCOV_MODELGPU", "")]), Ok(None));
    assert_eq!(read(&[("ROCOV_MODELGPU_BAR", "small")]), Ok(None));
}

#[test]
fn races_are_looked_for_behind_the_gpus() {
    let config = read(&[("ROCOV_MODELGPU", "gfx90ax2,gfx942,race")]);
    let config = config.unwrap().unwrap();
    assert_eq!(config.gpus.len(), 3);
    assert!(config.watches.lds);
    assert!(!config.watches.hazards);
    for alone in ["race", "race,gfx90a", "gfx90a,race,race"] {
        assert!(read(&[("ROCOV_MODELGPU", alone)]).is_err(), "{alone}");
    }
}

#[test]
fn hazards_are_looked_for_behind_the_gpus() {
    for (value, lds) in [
        ("gfx942,hazards", false),
        ("gfx942,race,hazards", true),
        ("gfx942,hazards,race", true),
    ] {
        let config = read(&[("ROCOV_MODELGPU", value)]).unwrap().unwrap();
        assert_eq!(config.gpus, [Target::Gfx942], "{value}");
        assert!(config.watches.hazards, "{value}");
        assert_eq!(config.watches.lds, lds, "{value}");
    }
    for alone in [
        "hazards",
        "hazards,gfx90a",
        "gfx90a,hazards,hazards",
        "gfx90a,hazards,race,hazards",
    ] {
        assert!(read(&[("ROCOV_MODELGPU", alone)]).is_err(), "{alone}");
    }
}

#[test]
fn gpus_are_listed_in_order() {
    use Target::{Gfx90a, Gfx942};
    assert_eq!(gpus("gfx90a"), [Gfx90a]);
    assert_eq!(gpus("gfx90ax2"), [Gfx90a, Gfx90a]);
    assert_eq!(gpus("gfx942x2,gfx90a"), [Gfx942, Gfx942, Gfx90a]);
    assert_eq!(gpus("gfx90ax8").len(), 8);
}

#[test]
fn defaults() {
    let config = read(&[("ROCOV_MODELGPU", "gfx90a")]).unwrap().unwrap();
    assert_eq!(config.bar, Bar::Large);
    assert_eq!(config.vram_bytes, 16 << 30);
    assert_eq!(config.tmp, PathBuf::from("/tmp"));
    assert_eq!(config.log, None);
    assert_eq!(config.instructions, None);
    assert_eq!(config.fidelity, None);
    assert!(!config.traces);
    assert!(!config.xgmi);
}

/// The library's table, from which the book is printed, names the defaults of the model.
#[test]
fn documented_defaults_are_in_force() {
    let model = ("ROCOV_MODELGPU", "gfx90a");
    let usual = read(&[model]);
    let mut compared = 0;
    for setting in SETTINGS
        .iter()
        .filter(|setting| setting.reader == Reader::ModelGpu)
    {
        let DefaultValue::Literal(value) = setting.default else {
            continue;
        };
        assert_eq!(
            read(&[model, (setting.name, value)]),
            usual,
            "{}={value}",
            setting.name
        );
        compared += 1;
    }
    assert_eq!(compared, 4, "the rows with a default value");
}

#[test]
fn companions() {
    let config = read(&[
        ("ROCOV_MODELGPU", "gfx90a"),
        ("ROCOV_MODELGPU_BAR", "small"),
        ("ROCOV_MODELGPU_XGMI", "1"),
        ("ROCOV_MODELGPU_VRAM_MIB", "64"),
        ("ROCOV_MODELGPU_THREADS", "3"),
        ("ROCOV_MODELGPU_LOG", "a:b.log:2"),
        ("ROCOV_MODELGPU_INSTRUCTIONS", "a:1"),
        ("ROCOV_MODELGPU_FIDELITY", "2"),
        ("ROCOV_MODELGPU_TRACE", "1"),
        ("TMPDIR", "/var/tmp"),
    ])
    .unwrap()
    .unwrap();
    assert_eq!(config.bar, Bar::Small);
    assert!(config.xgmi);
    assert_eq!(config.vram_bytes, 64 << 20);
    assert_eq!(config.threads, 3);
    assert_eq!(config.watches, Watches::default());
    assert!(config.traces);
    assert_eq!(config.tmp, PathBuf::from("/var/tmp"));
    let file = Destination::File("a:1".into());
    assert_eq!(config.instructions, Some(file));
    assert_eq!(config.fidelity, Some(Destination::Stderr));
    let log = config.log.unwrap();
    assert_eq!(log.destination, Destination::File("a:b.log".into()));
    assert_eq!(log.level, 2);
}

#[test]
fn the_file_2_is_standard_error() {
    assert_eq!(parse_log("2").unwrap().destination, Destination::Stderr);
    assert_eq!(parse_log("2:2").unwrap().level, 2);
    assert_eq!(parse_destination("2"), Destination::Stderr);
}

#[test]
fn bad_values_name_themselves_and_what_is_allowed() {
    let error = |variable, value| {
        // The variable under test comes first and wins.
        read(&[(variable, value), ("ROCOV_MODELGPU", "gfx90a")]).unwrap_err()
    };
    assert_eq!(
        error("ROCOV_MODELGPU", "gfx1031"),
        "ROCOV_MODELGPU=\"gfx1031\": \"gfx1031\" is no modelled GPU; allowed: \
         TARGET[xN][,TARGET[xN]...] with TARGET one of gfx906, gfx908, gfx90a, gfx942, gfx950, gfx1030, gfx1100, gfx1201, gfx1250"
    );
    assert_eq!(
        error("ROCOV_MODELGPU", "gfx90ax0"),
        "ROCOV_MODELGPU=\"gfx90ax0\": \"0\" is no number of GPUs; allowed: 1 to 8"
    );
    assert_eq!(
        error("ROCOV_MODELGPU", "gfx90ax8,gfx942"),
        "ROCOV_MODELGPU=\"gfx90ax8,gfx942\": 9 GPUs are too many; allowed: 1 to 8 in all"
    );
    assert_eq!(
        error("ROCOV_MODELGPU_BAR", "big"),
        "ROCOV_MODELGPU_BAR=\"big\": allowed: small, large"
    );
    assert_eq!(
        error("ROCOV_MODELGPU_VRAM_MIB", "0"),
        "ROCOV_MODELGPU_VRAM_MIB=\"0\": allowed: 1 to 1048576 (MiB)"
    );
    assert_eq!(
        error("ROCOV_MODELGPU_LOG", "x:7"),
        "ROCOV_MODELGPU_LOG=\"x:7\": \"7\" is no log level; allowed: FILE[:LEVEL] with \
         LEVEL 1 or 2"
    );
}
