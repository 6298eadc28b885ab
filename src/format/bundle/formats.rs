//! The formats of containers: their first bytes, and their names in messages.

/// A format of containers.
pub(super) struct Format {
    /// The first bytes.
    pub(super) magic: &'static [u8],
    /// The name in messages.
    pub(super) name: &'static str,
}

/// A plain bundle.
pub(super) const BUNDLE: Format = Format {
    magic: b"__CLANG_OFFLOAD_BUNDLE__",
    name: "offload bundle",
};

/// A compressed bundle.
pub(super) const COMPRESSED: Format = Format {
    magic: b"CCOB",
    name: "compressed bundle",
};

/// An offload binary.
pub(super) const OFFLOAD_BINARY: Format = Format {
    magic: &[0x10, 0xff, 0x10, 0xad],
    name: "offload binary",
};

/// A CUDA fat binary.
pub(super) const FAT_BINARY: Format = Format {
    magic: &[0x50, 0xed, 0x55, 0xba, 1, 0],
    name: "CUDA fat binary",
};

/// A kpack archive.
pub(super) const KPACK: Format = Format {
    magic: b"KPAK",
    name: "kpack archive",
};

/// Returns whether `bytes` start with a container: a bundle, compressed or not, an offload binary, or a fat binary.
pub(super) fn starts_container(bytes: &[u8]) -> bool {
    starts_bundle(bytes) || starts_packed(bytes)
}

/// Returns whether `bytes` start with a container that may begin at any multiple of 8.
pub(super) fn starts_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(OFFLOAD_BINARY.magic) || bytes.starts_with(FAT_BINARY.magic)
}

/// Returns whether `bytes` start with a bundle, compressed or not.
pub(super) fn starts_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(BUNDLE.magic) || bytes.starts_with(COMPRESSED.magic)
}
