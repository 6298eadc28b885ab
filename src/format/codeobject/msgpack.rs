//! The part of MessagePack that metadata needs: values one after another.
//!
//! The crate `rmp` decodes the markers. Its decoders would check the UTF-8 of all text, even of the kernels'
//! arguments, which are most of the metadata and which rocov skips.

use std::fmt;

use rmp::Marker;

/// The most bytes of text in a message.
const SHOWN: usize = 64;

/// A value. For a list or map it is only the start: the elements follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::format) enum Value<'a> {
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
pub(in crate::format) enum Fault {
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
pub(in crate::format) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(in crate::format) fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// Reads the next value, or only the start of a list or map.
    pub(in crate::format) fn start(&mut self) -> Result<Value<'a>, Fault> {
        let at = self.at;
        let [tag] = self.array()?;
        Ok(match Marker::from_u8(tag) {
            Marker::Null => Value::Nil,
            Marker::Reserved => return Err(Fault::NoValue(at)),
            Marker::False => Value::Bool(false),
            Marker::True => Value::Bool(true),
            Marker::FixPos(number) => Value::Number(number.into()),
            Marker::FixNeg(number) => signed(number.into()),
            Marker::U8 => Value::Number(self.number(1)?),
            Marker::U16 => Value::Number(self.number(2)?),
            Marker::U32 => Value::Number(self.number(4)?),
            Marker::U64 => Value::Number(self.number(8)?),
            Marker::I8 => self.integer(1)?,
            Marker::I16 => self.integer(2)?,
            Marker::I32 => self.integer(4)?,
            Marker::I64 => self.integer(8)?,
            Marker::F32 => self.skip(4, Value::Fraction)?,
            Marker::F64 => self.skip(8, Value::Fraction)?,
            Marker::FixStr(len) => Value::Text(self.take(len.into())?),
            Marker::Str8 => self.text(1)?,
            Marker::Str16 => self.text(2)?,
            Marker::Str32 => self.text(4)?,
            Marker::Bin8 => self.bytes(1, 0)?,
            Marker::Bin16 => self.bytes(2, 0)?,
            Marker::Bin32 => self.bytes(4, 0)?,
            // Extensions have a type, too.
            Marker::Ext8 => self.bytes(1, 1)?,
            Marker::Ext16 => self.bytes(2, 1)?,
            Marker::Ext32 => self.bytes(4, 1)?,
            Marker::FixExt1 => self.skip(2, Value::Bytes)?,
            Marker::FixExt2 => self.skip(3, Value::Bytes)?,
            Marker::FixExt4 => self.skip(5, Value::Bytes)?,
            Marker::FixExt8 => self.skip(9, Value::Bytes)?,
            Marker::FixExt16 => self.skip(17, Value::Bytes)?,
            Marker::FixArray(count) => Value::List(count.into()),
            Marker::Array16 => Value::List(self.number(2)? as u32),
            Marker::Array32 => Value::List(self.number(4)? as u32),
            Marker::FixMap(count) => Value::Map(count.into()),
            Marker::Map16 => Value::Map(self.number(2)? as u32),
            Marker::Map32 => Value::Map(self.number(4)? as u32),
        })
    }

    /// Reads the next value and skips its elements.
    pub(in crate::format) fn value(&mut self) -> Result<Value<'a>, Fault> {
        let value = self.start()?;
        self.finish(value)?;
        Ok(value)
    }

    /// Skips the elements of a value that has started.
    pub(in crate::format) fn finish(&mut self, value: Value<'a>) -> Result<(), Fault> {
        let within = |value| match value {
            Value::List(count) => u64::from(count),
            Value::Map(count) => 2 * u64::from(count),
            _ => 0,
        };
        let mut left = within(value);
        while left > 0 {
            left -= self.skip_short(left);
            if left == 0 {
                break;
            }
            // Each value takes a byte, so the sum stays below 2^33 times the number of bytes.
            left += within(self.start()?);
            left -= 1;
        }
        Ok(())
    }

    /// Skips at most `most` values that are short text or small numbers, as nearly all in metadata are. Returns their number.
    fn skip_short(&mut self, most: u64) -> u64 {
        let mut count = 0;
        while count < most {
            let len = match self.bytes.get(self.at) {
                Some(0..=0x7f) => 1,
                // The five low bits are the length of the text.
                Some(tag @ 0xa0..=0xbf) => 1 + usize::from(tag & 0x1f),
                _ => break,
            };
            if self.bytes.len() - self.at < len {
                break;
            }
            self.at += len;
            count += 1;
        }
        count
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

    /// Reads a signed big-endian number of `size` bytes.
    fn integer(&mut self, size: u64) -> Result<Value<'a>, Fault> {
        let unused = 64 - 8 * size as u32;
        let number = self.number(size)? << unused;
        Ok(signed(number.cast_signed() >> unused))
    }

    /// Reads text after its length, which has `size` bytes.
    fn text(&mut self, size: u64) -> Result<Value<'a>, Fault> {
        let len = self.number(size)?;
        Ok(Value::Text(self.take(len)?))
    }

    /// Skips bytes after their length, which has `size` bytes, and `more` bytes.
    fn bytes(&mut self, size: u64, more: u64) -> Result<Value<'a>, Fault> {
        let len = self.number(size)?;
        self.skip(len + more, Value::Bytes)
    }

    /// Skips the bytes of a value.
    fn skip(&mut self, len: u64, value: Value<'a>) -> Result<Value<'a>, Fault> {
        self.take(len)?;
        Ok(value)
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
        let cases: [(&[u8], Value); 27] = [
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
            (
                &[0x94, 0xa2, b'a', b'b', 7, 0xa0, 0xcc, 200],
                Value::List(4),
            ),
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
