//! The paths of the driver: device nodes, and the files that describe them.
//!
//! The code is pure and does not allocate: it checks every file that the program opens.

/// A device node of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceNode {
    /// `/dev/kfd`.
    Kfd,
    /// `/dev/dri/renderD(128 + n)`: the render node of GPU n.
    Render(usize),
}

/// Minor number of the first render node.
pub(crate) const FIRST_RENDER_MINOR: u32 = 128;

/// The object that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A device node.
    Device(DeviceNode),
    /// A file or directory in the generated tree.
    Tree,
}

/// Directories and files that come from the generated tree as a whole.
const TREE: [&[u8]; 6] = [
    b"/dev/dri",
    b"/sys/devices/virtual/kfd",
    b"/sys/class/kfd",
    b"/sys/class/drm",
    b"/sys/module/amdgpu",
    b"/proc/modules",
];

/// The first part of the names of DRM nodes under `/sys/dev/char`: their major number.
const DRM_CHAR_DEVICES: &[u8] = b"/sys/dev/char/226:";

/// The object at `path` on a machine with `gpus` GPUs; `None` if it is not the driver's.
pub(crate) fn place(path: &[u8], gpus: usize) -> Option<Place> {
    if path == b"/dev/kfd" {
        return Some(Place::Device(DeviceNode::Kfd));
    }
    if let Some(minor) = path.strip_prefix(b"/dev/dri/renderD") {
        let minor = std::str::from_utf8(minor).ok()?.parse::<u32>().ok();
        let gpu = minor.and_then(|minor| minor.checked_sub(FIRST_RENDER_MINOR));
        if let Some(gpu) = gpu.map(|gpu| gpu as usize).filter(|&gpu| gpu < gpus) {
            return Some(Place::Device(DeviceNode::Render(gpu)));
        }
    }
    is_ours(path).then_some(Place::Tree)
}

/// Returns whether a path may be the driver's: a cheap test before all others.
pub(crate) fn is_ours(path: &[u8]) -> bool {
    let under = |prefix: &&[u8]| match path.strip_prefix(*prefix) {
        Some(rest) => rest.is_empty() || rest[0] == b'/',
        None => false,
    };
    path == b"/dev/kfd" || path.starts_with(DRM_CHAR_DEVICES) || TREE.iter().any(under)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_nodes() {
        let render = |path: &str| place(path.as_bytes(), 2);
        assert_eq!(place(b"/dev/kfd", 1), Some(Place::Device(DeviceNode::Kfd)));
        assert_eq!(
            render("/dev/dri/renderD129"),
            Some(Place::Device(DeviceNode::Render(1)))
        );
        // Not a modelled GPU, yet the machine's own nodes stay hidden.
        assert_eq!(render("/dev/dri/renderD130"), Some(Place::Tree));
        assert_eq!(render("/dev/dri/renderD12"), Some(Place::Tree));
        assert_eq!(render("/dev/dri/card0"), Some(Place::Tree));
    }

    #[test]
    fn prefixes_end_at_a_slash() {
        assert!(is_ours(b"/proc/modules"));
        assert!(!is_ours(b"/proc/modules2"));
        assert!(is_ours(b"/sys/class/drm"));
        assert!(is_ours(b"/sys/class/drm/renderD128"));
        assert!(!is_ours(b"/sys/class/drmx"));
        assert!(is_ours(b"/sys/dev/char/226:128/device"));
        assert!(!is_ours(b"/sys/dev/char/22"));
        for other in [
            "",
            "/",
            "/dev",
            "/dev/null",
            "/dev/kfd2",
            "/sys/class",
            "dev/kfd",
        ] {
            assert!(!is_ours(other.as_bytes()), "{other}");
        }
    }
}
