//! The part of MessagePack that metadata needs: values one after another.
//!
//! A general decoder would add 100 KiB to librocov. It would also check the UTF-8 of all text, even of the
//! kernels' arguments, which are most of the metadata and which rocov skips.

use std::fmt;

/// The most bytes of text in a message.
const SHOWN: usize = 64;

/// A value. For a list or map it is only the start: the elements follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Nil,
    Bool(bool),
    Number(u64),
    /// A number below 0.
    Negative(i64),
    Fraction,
    /// Text that should be UTF-8.
    Text(&'a [u8]),
    /// Bytes or an extension.
    Bytes,
    /// The number of elements.
    List(u32),
    /// The number of pairs of key and value.
    Map(u32),
}

/// The reason why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The bytes end before the value does.
    Cut,
    /// The byte at this offset starts no value.
    NoValue(usize),
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Nil => f.write_str("nil"),
            Value::Bool(value) => value.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Negative(number) => number.fmt(f),
            Value::Fraction => f.write_str("a fraction"),
            Value::Text(text) => match text.get(..SHOWN) {
                Some(start) => write!(f, "\"{}...\"", start.escape_ascii()),
                None => write!(f, "\"{}\"", text.escape_ascii()),
            },
            Value::Bytes => f.write_str("bytes"),
            Value::List(_) => f.write_str("a list"),
            Value::Map(_) => f.write_str("a map"),
        }
    }
}

/// A reader that moves forward through bytes.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// Reads the next value, or only the start of a list or map.
    pub(super) fn start(&mut self) -> Result<Value<'a>, Fault> {
        let at = self.at;
        let [tag] = self.array()?;
        Ok(match tag {
            0x00..=0x7f => Value::Number(tag.into()),
            0x80..=0x8f => Value::Map((tag & 15).into()),
            0x90..=0x9f => Value::List((tag & 15).into()),
            0xa0..=0xbf => Value::Text(self.take((tag & 31).into())?),
            0xc0 => Value::Nil,
            0xc1 => return Err(Fault::NoValue(at)),
            0xc2 | 0xc3 => Value::Bool(tag == 0xc3),
            // Length in 1, 2 or 4 bytes. Extensions also have a type.
            0xc4..=0xc6 => self.skipped(1 << (tag - 0xc4), 0)?,
            0xc7..=0xc9 => self.skipped(1 << (tag - 0xc7), 1)?,
            0xca | 0xcb => {
                self.take(4 << (tag - 0xca))?;
                Value::Fraction
            }
            0xcc..=0xcf => Value::Number(self.number(1 << (tag - 0xcc))?),
            0xd0..=0xd3 => {
                let size = 1 << (tag - 0xd0);
                let unused = 64 - 8 * size as u32;
                signed((self.number(size)? << unused).cast_signed() >> unused)
            }
            // Extensions of 1 to 16 bytes.
            0xd4..=0xd8 => {
                self.take(1 + (1 << (tag - 0xd4)))?;
                Value::Bytes
            }
            0xd9..=0xdb => {
                let len = self.number(1 << (tag - 0xd9))?;
                Value::Text(self.take(len)?)
            }
            0xdc | 0xdd => Value::List(self.number(2 << (tag - 0xdc))? as u32),
            0xde | 0xdf => Value::Map(self.number(2 << (tag - 0xde))? as u32),
            0xe0..=0xff => signed(tag.cast_signed().into()),
        })
    }

    /// Reads the next value and skips its elements.
    pub(super) fn value(&mut self) -> Result<Value<'a>, Fault> {
        let value = self.start()?;
        self.finish(value)?;
        Ok(value)
    }

    /// Skips the elements of a value that has started.
    pub(super) fn finish(&mut self, value: Value<'a>) -> Result<(), Fault> {
        let within = |value| match value {
            Value::List(count) => u64::from(count),
            Value::Map(count) => 2 * u64::from(count),
            _ => 0,
        };
        let mut left = within(value);
        while left > 0 {
            // Each value takes a byte, so the sum stays below 2^33 times the number of bytes.
            left += within(self.start()?);
            left -= 1;
        }
        Ok(())
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], Fault> {
        let len = usize::try_from(len).map_err(|_| Fault::Cut)?;
        let taken = self.bytes[self.at..].get(..len).ok_or(Fault::Cut)?;
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let taken = self.bytes[self.at..].first_chunk().ok_or(Fault::Cut)?;
        self.at += N;
        Ok(*taken)
    }

    /// Reads a big-endian number of `size` bytes.
    fn number(&mut self, size: u64) -> Result<u64, Fault> {
        let bytes = self.take(size)?.iter();
        Ok(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Skips bytes after their length, which has `size` bytes, and `more` bytes.
    fn skipped(&mut self, size: u64, more: u64) -> Result<Value<'a>, Fault> {
        let len = self.number(size)?;
        self.take(len + more)?;
        Ok(Value::Bytes)
    }
}

/// The value of a signed number. A writer may choose a signed type for any number.
fn signed<'a>(number: i64) -> Value<'a> {
    u64::try_from(number).map_or(Value::Negative(number), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_each_form() {
        let cases: [(&[u8], Value); 26] = [
            (&[0x7f], Value::Number(127)),
            (&[0xff], Value::Negative(-1)),
            (&[0xe0], Value::Negative(-32)),
            (&[0xcc, 200], Value::Number(200)),
            (&[0xcd, 1, 0], Value::Number(256)),
            (&[0xce, 0, 1, 0, 0], Value::Number(65536)),
            (&[0xcf, 255, 0, 0, 0, 0, 0, 0, 0], Value::Number(255 << 56)),
            (&[0xd0, 0x80], Value::Negative(-128)),
            (&[0xd0, 0x7f], Value::Number(127)),
            (&[0xd1, 0xff, 0xfe], Value::Negative(-2)),
            (&[0xd2, 0xff, 0xff, 0xff, 0xfd], Value::Negative(-3)),
            (&[0xd3, 0, 0, 0, 0, 0, 0, 0, 5], Value::Number(5)),
            (&[0xc0], Value::Nil),
            (&[0xc2], Value::Bool(false)),
            (&[0xc3], Value::Bool(true)),
            (&[0xca, 0, 0, 0, 0], Value::Fraction),
            (&[0xcb, 0, 0, 0, 0, 0, 0, 0, 0], Value::Fraction),
            (&[0xa2, b'a', b'b'], Value::Text(b"ab")),
            (&[0xd9, 1, b'a'], Value::Text(b"a")),
            (&[0xda, 0, 1, b'a'], Value::Text(b"a")),
            (&[0xdb, 0, 0, 0, 1, b'a'], Value::Text(b"a")),
            (&[0xc5, 0, 2, 1, 2], Value::Bytes),
            (&[0xc7, 2, 0, 1, 2], Value::Bytes),
            (&[0xd5, 0, 1, 2], Value::Bytes),
            (&[0xdd, 0, 0, 0, 1, 0x80], Value::List(1)),
            (&[0xde, 0, 1, 0xa0, 0x91, 0xc0], Value::Map(1)),
        ];
        for (bytes, value) in cases {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.value(), Ok(value), "{bytes:x?}");
            assert_eq!(reader.at, bytes.len(), "{bytes:x?}");
            for len in 0..bytes.len() {
                let cut = Reader::new(&bytes[..len]).value();
                assert_eq!(cut, Err(Fault::Cut), "{len} bytes of {bytes:x?}");
            }
        }
        assert_eq!(Reader::new(&[0x91, 0xc1]).value(), Err(Fault::NoValue(1)));
    }

    #[test]
    fn neither_depth_nor_counts_are_a_matter() {
        let deep = [0x91; 1 << 20];
        assert_eq!(Reader::new(&deep).value(), Err(Fault::Cut));
        let large = [0xdf, 255, 255, 255, 255].repeat(1 << 16);
        assert_eq!(Reader::new(&large).value(), Err(Fault::Cut));
    }

    #[test]
    fn long_text_is_shown_in_part() {
        let text = "k".repeat(100);
        let shown = Value::Text(text.as_bytes()).to_string();
        assert_eq!(shown, format!("\"{}...\"", &text[..64]));
        assert_eq!(Value::Text(b"a\xff\n").to_string(), "\"a\\xff\\n\"");
    }
}
