//! Checks the GPUs that GPU code runs on: the machine's, or the modelled one.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rocov::format::codeobject::processor_of_version;

use super::finding::Finding;

/// The directory of devices.
pub(crate) const DEV: &str = "/dev";
/// The GPUs that the kernel driver has, and CPUs.
pub(crate) const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";
/// The file of the kernel driver.
const KFD: &str = "kfd";

/// The kernel driver and its GPUs, by the directory of devices and the driver's of nodes.
pub(crate) fn check(dev: &Path, nodes: &Path, has_model: bool) -> Vec<Finding> {
    let kfd = dev.join(KFD);
    if !kfd.exists() {
        return vec![none(&format!("no {}", kfd.display()), has_model)];
    }
    let gpus = gpus(nodes);
    if gpus.is_empty() {
        let found = format!("{} has none", nodes.display());
        return vec![none(&found, has_model)];
    }
    let mut findings = vec![access(&kfd)];
    for (node, gpu) in gpus {
        let found = format!("{}, node {node}", gpu.arch);
        findings.push(Finding::ok("GPU", found));
        if let Some(minor) = gpu.render_minor {
            findings.push(access(&dev.join(format!("dri/renderD{minor}"))));
        }
    }
    findings
}

/// There is no GPU.
fn none(found: &str, has_model: bool) -> Finding {
    if has_model {
        return Finding::warning(
            "GPU",
            found,
            "run programs on a modelled one: `rocov run --gpu model:gfx90a`",
        );
    }
    Finding::missing(
        "GPU",
        found,
        "load the driver amdgpu, or build the modelled GPU: `cargo build --release --workspace`",
    )
}

/// Returns whether this user may use a device.
fn access(path: &Path) -> Finding {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => Finding::ok("GPU", format!("{} can be opened", path.display())),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let group = fs::metadata(path).map_or(0, |metadata| metadata.gid());
            Finding::missing(
                "GPU",
                format!("{} cannot be opened by this user", path.display()),
                format!(
                    "become a member of its group (number {group}, usually render): `sudo usermod \
                     -aG render $USER`, and log in again",
                ),
            )
        }
        Err(error) => Finding::missing(
            "GPU",
            format!("{} cannot be opened: {error}", path.display()),
            "look for messages from amdgpu in `dmesg`",
        ),
    }
}

/// The targets of the GPUs of these nodes, each once.
pub(crate) fn targets(nodes: &Path) -> BTreeSet<String> {
    gpus(nodes).into_iter().map(|(_, gpu)| gpu.arch).collect()
}

/// A GPU, by the properties of its node.
struct Gpu {
    arch: String,
    /// Number of its render node.
    render_minor: Option<u64>,
}

/// The nodes that are GPUs, by number.
fn gpus(nodes: &Path) -> Vec<(u64, Gpu)> {
    let entries = fs::read_dir(nodes).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut gpus: Vec<_> = paths.filter_map(|path| gpu(&path)).collect();
    gpus.sort_by_key(|(node, _)| *node);
    gpus
}

fn gpu(node: &Path) -> Option<(u64, Gpu)> {
    let number = node.file_name()?.to_str()?.parse().ok()?;
    let properties = fs::read_to_string(node.join("properties")).ok()?;
    let property = |name: &str| -> Option<u64> {
        let lines = properties.lines().filter_map(|line| line.split_once(' '));
        let mut values = lines.filter(|(key, _)| *key == name);
        values.next()?.1.trim().parse().ok()
    };
    let gpu = Gpu {
        arch: processor_of_version(property("gfx_target_version")?)?,
        render_minor: property("drm_render_minor"),
    };
    Some((number, gpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::finding::State;

    #[test]
    fn a_machine_without_a_gpu_has_the_modelled_one_if_that_is_built() {
        let directory = tempfile::tempdir().unwrap();
        let states = |has_model| -> Vec<State> {
            let findings = check(directory.path(), directory.path(), has_model);
            findings.iter().map(|finding| finding.state).collect()
        };
        assert_eq!(states(true), [State::Warning]);
        assert_eq!(states(false), [State::Missing]);
        // A driver without a GPU is none.
        fs::write(directory.path().join("kfd"), "").unwrap();
        assert_eq!(states(false), [State::Missing]);
    }

    #[test]
    fn gpus_are_named_and_must_be_accessible() {
        let directory = tempfile::tempdir().unwrap();
        let dev = directory.path().join("dev");
        let nodes = directory.path().join("nodes");
        fs::create_dir_all(dev.join("dri")).unwrap();
        fs::write(dev.join("kfd"), "").unwrap();
        fs::write(dev.join("dri/renderD128"), "").unwrap();
        let versions = [("0", 0, 0), ("1", 90010, 128), ("2", 90402, 129)];
        for (node, version, minor) in versions {
            fs::create_dir_all(nodes.join(node)).unwrap();
            let text =
                format!("simd_count 1\ngfx_target_version {version}\ndrm_render_minor {minor}\n");
            fs::write(nodes.join(node).join("properties"), text).unwrap();
        }
        let found: Vec<_> = check(&dev, &nodes, false)
            .iter()
            .map(|finding| {
                (
                    finding.state,
                    finding.found.replace(dev.to_str().unwrap(), ""),
                )
            })
            .collect();
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(targets(&nodes).iter().eq(["gfx90a", "gfx942"]));
        assert_eq!(found[0], (State::Ok, "/kfd can be opened".to_owned()));
        assert_eq!(found[1], (State::Ok, "gfx90a, node 1".to_owned()));
        assert_eq!(
            found[2],
            (State::Ok, "/dri/renderD128 can be opened".into())
        );
        assert_eq!(found[3], (State::Ok, "gfx942, node 2".to_owned()));
        assert_eq!(found[4].0, State::Missing);
        assert!(found[4].1.starts_with("/dri/renderD129 cannot be"));
    }
}
