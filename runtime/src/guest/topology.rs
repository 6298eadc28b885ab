//! The GPUs of the machine as the Linux driver describes them, for a process that has not asked HSA.
//!
//! Reading the driver's files opens no device and starts nothing.

use std::fs;
use std::path::Path;

use rocov::device::Agent;
use rocov::format::codeobject::processor_of_version;

/// The driver's directory with one directory for each node, CPUs included. The name is the number.
const NODES: &str = "/sys/devices/virtual/kfd/kfd/topology/nodes";

/// Returns the GPUs that HSA would show to this process. Their features are not known. `visible` is the
/// value of `ROCR_VISIBLE_DEVICES`.
pub(crate) fn agents(visible: Option<&str>) -> Vec<Agent> {
    agents_in(Path::new(NODES), visible)
}

fn agents_in(nodes: &Path, visible: Option<&str>) -> Vec<Agent> {
    let entries = fs::read_dir(nodes).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_unstable();
    let gpus = numbers.into_iter().filter_map(|node| {
        let properties = nodes.join(node.to_string()).join("properties");
        gpu(node, &fs::read_to_string(properties).ok()?)
    });
    let mut gpus: Vec<_> = gpus.enumerate().collect();
    if let Some(visible) = visible {
        gpus.retain(|(place, agent)| is_among(visible, *place, agent));
    }
    let visible = gpus.into_iter().enumerate();
    visible
        .map(|(index, (_, agent))| Agent { index, ..agent })
        .collect()
}

/// Returns the GPU with these properties, lines of a name and a number; `None` for a CPU.
fn gpu(node: u32, properties: &str) -> Option<Agent> {
    let property = |name: &str| {
        let mut lines = properties.lines().filter_map(|line| line.split_once(' '));
        let (_, value) = lines.find(|(key, _)| *key == name)?;
        value.trim().parse::<u64>().ok()
    };
    let id = property("unique_id").filter(|id| *id != 0);
    Some(Agent {
        handle: u64::from(node),
        index: 0,
        name: processor_of_version(property("gfx_target_version")?)?,
        isa: None,
        uuid: id.map(|id| format!("GPU-{id:016x}")),
        node: Some(node),
    })
}

/// Returns whether ROCr's list names this GPU, by its place or by the beginning of its UUID.
fn is_among(visible: &str, place: usize, agent: &Agent) -> bool {
    let words = visible.split(',').map(str::trim);
    let mut words = words.filter(|word| !word.is_empty());
    words.any(|word| match word.parse::<usize>() {
        Ok(number) => place == number,
        Err(_) => {
            let uuid = agent.uuid.as_deref().unwrap_or_default();
            uuid.to_lowercase().starts_with(&word.to_lowercase())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_the_nodes_with_a_processor() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (node, version, id) in [
            (0, 0, 0),
            (1, 90_010, 0xabcd),
            (2, 90_402, 0),
            (10, 90_402, 7),
        ] {
            let node = directory.path().join(node.to_string());
            fs::create_dir(&node).expect("a directory can be made");
            let text = format!("simd_count 4\ngfx_target_version {version}\nunique_id {id}\n");
            fs::write(node.join("properties"), text).expect("a file can be written");
        }
        fs::create_dir(directory.path().join("11")).expect("a directory can be made");
        let shown = |visible| {
            let agents = agents_in(directory.path(), visible).into_iter();
            let agents =
                agents.map(|agent| format!("{} {} of {:?}", agent.index, agent.name, agent.node));
            agents.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(
            shown(None),
            "0 gfx90a of Some(1), 1 gfx942 of Some(2), 2 gfx942 of Some(10)"
        );
        assert_eq!(shown(Some("2")), "0 gfx942 of Some(10)");
        assert_eq!(
            shown(Some("GPU-0000000000000007, 0")),
            "0 gfx90a of Some(1), 1 gfx942 of Some(10)"
        );
        assert_eq!(shown(Some("GPU-00000000ABCD")), "");
        assert_eq!(shown(Some("GPU-000000000000ABCD")), "0 gfx90a of Some(1)");
        assert_eq!(shown(Some("")), "");
        assert!(agents_in(&directory.path().join("none"), None).is_empty());
    }
}
