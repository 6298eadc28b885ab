//! Decompression with a limit on memory.

use std::fmt;

use byteorder::{ByteOrder, LittleEndian};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_COMPUTE_ADLER32, TINFL_FLAG_PARSE_ZLIB_HEADER,
    TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::format::lz4;

/// The window in bytes that every zstd decoder should support (RFC 8878, 3.1.1.1.2).
const MIN_WINDOW: u64 = 8 << 20;

/// The magic number at the start of a zstd frame.
pub(super) const ZSTD_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";

/// The reason if there is no memory for the output.
const NO_MEMORY: &str = "there is not enough memory for its contents";

/// A compression method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// zlib (RFC 1950).
    Zlib,
    /// zstd (RFC 8878).
    Zstd,
    /// An LZ4 block, in CUDA fat binaries alone.
    Lz4,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Lz4 => "LZ4",
        })
    }
}

/// The result of decompression.
pub(super) struct Unpacked {
    /// The bytes. If there are more than declared, one more than that.
    pub(super) bytes: Vec<u8>,
    /// The number of packed bytes that belong to the stream.
    pub(super) taken: usize,
}

/// Unpacks the stream at the start of `packed`, up to one byte more than `declared`. Memory grows with the
/// output, whatever size is declared. A zstd frame also takes its window.
///
/// # Errors
/// Fails if the stream is damaged, cut short or of another format, or unpacks to more than any real one
/// ([`most_of`]). The error is the decoder's message.
pub(super) fn unpack(method: Method, packed: &[u8], declared: u64) -> Result<Unpacked, String> {
    let allowed = most_of(packed.len());
    let mut bytes = Vec::new();
    let mut rest = packed;
    let most = declared.min(allowed).saturating_add(1);
    match method {
        Method::Zlib => {
            let mut added = Ok(());
            let taken = Inflate::with_room(most).unpack(packed, &mut |part| {
                let room = most - bytes.len() as u64;
                let len = part.len().min(usize::try_from(room).unwrap_or(usize::MAX));
                added = add(&mut bytes, &part[..len]);
                added.is_ok() && (bytes.len() as u64) < most
            });
            added?;
            let taken = taken?;
            rest = &packed[taken..];
        }
        Method::Zstd => {
            check_window(packed, declared.min(allowed))?;
            let result = unpack_zstd(&mut rest, most, &mut bytes);
            result.map_err(|error| error.to_string())??;
        }
        Method::Lz4 => {
            bytes = lz4::unpack(packed, most)?;
            rest = &[];
        }
    }
    if bytes.len() as u64 > allowed {
        return Err(format!(
            "it unpacks to more than {allowed} bytes, the most for {} packed ones",
            packed.len()
        ));
    }
    Ok(Unpacked {
        bytes,
        taken: packed.len() - rest.len(),
    })
}

/// Unpacks the stream `packed`, which has `declared` bytes when unpacked. Memory grows with the output, and is limited by
/// `declared` and by the size of `packed`.
///
/// # Errors
/// Fails if the stream is damaged, cut short or of another format, or has another size. The error is the reason.
pub fn unpack_whole(method: Method, packed: &[u8], declared: u64) -> Result<Vec<u8>, String> {
    let bytes = unpack(method, packed, declared)?.bytes;
    match bytes.len() as u64 {
        found if found == declared => Ok(bytes),
        // No more are unpacked than one byte beyond.
        found if found > declared => Err(format!("more bytes than the {declared} in its header")),
        found => Err(format!("{found} bytes, but its header says {declared}")),
    }
}

/// The most bytes that so many packed ones may unpack to, so that a small file cannot take all memory. Code compresses to
/// a tenth or a twentieth. zlib could make a thousandth of zeros, and zstd much less.
fn most_of(packed: usize) -> u64 {
    const MOST_TIMES: u64 = 256;
    const ALWAYS: u64 = 256 << 20;
    (packed as u64).saturating_mul(MOST_TIMES).max(ALWAYS)
}

/// Adds bytes. Fails without memory, when `Vec::extend` would end the process.
fn add(bytes: &mut Vec<u8>, more: &[u8]) -> Result<(), &'static str> {
    bytes.try_reserve(more.len()).map_err(|_| NO_MEMORY)?;
    bytes.extend_from_slice(more);
    Ok(())
}

/// A decoder for zlib streams, one after the other (RFC 1950, 1951).
///
/// flate2 puts 48 KiB on the stack when it makes its decoder, which can be the whole stack of a program's
/// thread. This decoder puts 11 KiB there.
pub(crate) struct Inflate {
    state: Box<DecompressorOxide>,
    /// The latest bytes. Later bytes may repeat them.
    window: Vec<u8>,
    /// True if nobody takes more bytes than the window has.
    holds_all: bool,
}

impl Default for Inflate {
    fn default() -> Self {
        Self::with_room(u64::MAX)
    }
}

impl Inflate {
    /// Makes a decoder for streams of which nobody takes more than `most` bytes.
    fn with_room(most: u64) -> Self {
        /// The largest distance to bytes that are repeated (RFC 1951, 2.).
        const WINDOW: u64 = 32 << 10;
        Self {
            state: Box::default(),
            window: vec![0; most.min(WINDOW) as usize],
            holds_all: most < WINDOW,
        }
    }

    /// Unpacks the stream at the start of `packed` and hands its contents to `take`, in parts, until `take`
    /// returns `false`. Returns the number of bytes of `packed` that it consumed.
    ///
    /// # Errors
    /// Fails if the stream is damaged or cut short.
    pub(crate) fn unpack(
        &mut self,
        packed: &[u8],
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<usize, &'static str> {
        let mut flags = TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_COMPUTE_ADLER32;
        if self.holds_all {
            flags |= TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        }
        self.state.init();
        let (mut taken, mut at) = (0, 0);
        loop {
            let rest = &packed[taken..];
            let (status, read, written) =
                decompress(&mut self.state, rest, &mut self.window, at, flags);
            taken += read;
            let wants_more = take(&self.window[at..at + written]);
            at = (at + written) % self.window.len().max(1);
            match status {
                TINFLStatus::Done => return Ok(taken),
                TINFLStatus::HasMoreOutput if wants_more => {}
                TINFLStatus::HasMoreOutput => return Ok(taken),
                _ => return Err("corrupt deflate stream"),
            }
        }
    }
}

/// Unpacks a zstd frame, up to `most` bytes. It does not use the decoder's own reader: that turns each error
/// into a `std::io` error, which links the texts of all of them into librocov.
fn unpack_zstd(
    frame: &mut &[u8],
    most: u64,
    bytes: &mut Vec<u8>,
) -> Result<Result<(), &'static str>, FrameDecoderError> {
    // A decoder that is used a second time refuses windows of more than 100 MiB. clang makes windows as large
    // as the data, up to 128 MiB.
    let mut decoder = FrameDecoder::new();
    decoder.init(&mut *frame)?;
    while !decoder.is_finished() && (bytes.len() as u64) < most {
        decoder.decode_blocks(&mut *frame, BlockDecodingStrategy::UptoBlocks(1))?;
        if let Err(error) = add(bytes, &decoder.collect().unwrap_or_default()) {
            return Ok(Err(error));
        }
    }
    bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok(Ok(()))
}

/// Rejects a zstd frame whose window is larger than all its declared contents (RFC 8878, 3.1.1.1). The
/// decoder fills the window before it returns a byte.
fn check_window(frame: &[u8], declared: u64) -> Result<(), String> {
    let [_, _, _, _, descriptor, rest @ ..] = frame else {
        return Ok(()); // The decoder refuses it.
    };
    let is_single_segment = descriptor & 0x20 != 0;
    let window = if is_single_segment {
        let dictionary_id_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let size_bytes = [1, 2, 4, 8][usize::from(descriptor >> 6)];
        let Some(size) = rest.get(dictionary_id_bytes..dictionary_id_bytes + size_bytes) else {
            return Ok(());
        };
        LittleEndian::read_uint(size, size_bytes)
    } else {
        let Some(window) = rest.first() else {
            return Ok(());
        };
        let base = 1_u64 << (10 + (window >> 3));
        base + base / 8 * u64::from(window & 7)
    };
    let allowed = declared.max(MIN_WINDOW);
    if window > allowed {
        return Err(format!(
            "it needs a window of {window} bytes, at most {allowed} are allowed"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zstd frame of one segment with `blocks` full blocks of one byte, 128 KiB each.
    fn frame(blocks: u64) -> Vec<u8> {
        const BLOCK_BYTES: u64 = 128 << 10;
        const SINGLE_SEGMENT_SIZE_OF_8_BYTES: u8 = 0xe0;
        const RUN_OF_ONE_BYTE: u64 = 1 << 1;
        let mut frame = ZSTD_MAGIC.to_vec();
        frame.push(SINGLE_SEGMENT_SIZE_OF_8_BYTES);
        frame.extend((blocks * BLOCK_BYTES).to_le_bytes());
        for block in 1..=blocks {
            let is_last = u64::from(block == blocks);
            let header = BLOCK_BYTES << 3 | RUN_OF_ONE_BYTE | is_last;
            frame.extend(&header.to_le_bytes()[..3]);
            frame.push(b'x');
        }
        frame
    }

    #[test]
    fn windows_as_large_as_clang_makes_them_are_read() {
        let packed = [&frame(1024)[..], b"rest"].concat();
        let unpacked = unpack(Method::Zstd, &packed, 128 << 20).unwrap();
        assert_eq!(unpacked.bytes.len(), 128 << 20);
        assert!(unpacked.bytes.iter().all(|byte| *byte == b'x'));
        assert_eq!(unpacked.taken, packed.len() - 4);
    }

    #[test]
    fn a_window_that_holds_more_than_is_declared_is_refused() {
        // One block more than the largest window that is allowed.
        let refused = unpack(Method::Zstd, &frame(65), 100).err();
        let expected = "it needs a window of 8519680 bytes, at most 8388608 are allowed";
        assert_eq!(refused.as_deref(), Some(expected));
        // A window descriptor: 2^41 and seven eighths of it.
        let refused = unpack(Method::Zstd, b"\x28\xb5\x2f\xfd\0\xff", 9 << 20).err();
        let expected = "it needs a window of 4123168604160 bytes, at most 9437184 are allowed";
        assert_eq!(refused.as_deref(), Some(expected));
    }

    /// 16 KiB that would be 512 MiB.
    #[test]
    fn a_small_stream_does_not_take_all_memory() {
        let bomb = frame(4096);
        let refused = unpack(Method::Zstd, &bomb, 1 << 30).err();
        let expected = "it needs a window of 536870912 bytes, at most 268435456 are allowed";
        assert_eq!(refused.as_deref(), Some(expected));
        // A window of 1 KiB: the decoder returns what it has.
        let mut bomb = ZSTD_MAGIC.to_vec();
        bomb.extend([0, 0]);
        bomb.extend(frame(4096).split_off(13));
        let refused = unpack(Method::Zstd, &bomb, 1 << 30).err().unwrap();
        let expected = "it unpacks to more than 268435456 bytes, the most for ";
        assert!(refused.starts_with(expected), "{refused}");
    }

    #[test]
    fn a_whole_stream_has_the_size_of_its_header() {
        let size = 64 * (128 << 10);
        let packed = frame(64);
        assert!(unpack_whole(Method::Zstd, &packed, size).is_ok());
        assert!(unpack_whole(Method::Zstd, &packed, size - 1).is_err());
        assert!(unpack_whole(Method::Zstd, &packed, size + 1).is_err());
    }

    #[test]
    fn no_more_than_declared_comes_out() {
        let unpacked = unpack(Method::Zstd, &frame(64), 1000).unwrap();
        assert_eq!(unpacked.bytes.len(), 1001);
    }

    #[test]
    fn headers_that_are_cut_short_are_refused() {
        let whole = frame(1);
        for len in 0..whole.len() {
            assert!(
                unpack(Method::Zstd, &whole[..len], 1 << 20).is_err(),
                "{len}"
            );
            assert!(
                unpack(Method::Zlib, &whole[..len], 1 << 20).is_err(),
                "{len}"
            );
        }
    }
}
