//! Frames of zstd, without a library that writes them.

/// `bytes` as a zstd frame of raw blocks (RFC 8878, 3.1.1): one segment, size in 4 bytes.
pub fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut frame = b"\x28\xb5\x2f\xfd\xa0".to_vec();
    frame.extend((bytes.len() as u32).to_le_bytes());
    let mut blocks = bytes.chunks(100_000).peekable();
    while let Some(block) = blocks.next() {
        let header = (block.len() as u32) << 3 | u32::from(blocks.peek().is_none());
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(block);
    }
    frame
}
