//! The part of MessagePack that AMDGPU metadata uses: maps, arrays, strings, integers, booleans.

/// A decoded value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Also booleans, as 0 and 1.
    Integer(i64),
    String(String),
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

/// The deepest nesting that the decoder accepts. Metadata never nests as deep; a corrupt note may.
const MAX_DEPTH: u32 = 16;

impl Value {
    /// Decodes one value. Returns `None` if the bytes end early or have an unexpected type.
    pub(super) fn decode(bytes: &[u8]) -> Option<Value> {
        Reader { bytes }.value(0)
    }

    /// The entry of a map.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        let Value::Map(entries) = self else {
            return None;
        };
        entries.iter().find_map(|(entry, value)| match entry {
            Value::String(name) if name == key => Some(value),
            _ => None,
        })
    }

    pub(super) fn string(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// A count or size.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        match self.get(key)? {
            Value::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// An array; empty if the key is missing.
    pub(super) fn array(&self, key: &str) -> &[Value] {
        match self.get(key) {
            Some(Value::Array(values)) => values,
            _ => &[],
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    /// A big-endian number of `size` bytes.
    fn number(&mut self, size: usize) -> Option<u64> {
        Some(
            self.take(size)?
                .iter()
                .fold(0, |value, byte| value << 8 | u64::from(*byte)),
        )
    }

    fn value(&mut self, depth: u32) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        let tag = self.number(1)?;
        match tag {
            0x00..=0x7f => Some(Value::Integer(tag as i64)),
            0xe0..=0xff => Some(Value::Integer(i64::from(tag as u8 as i8))),
            0xc2 | 0xc3 => Some(Value::Integer((tag & 1) as i64)),
            0xcc..=0xcf => {
                let number = self.number(1 << (tag - 0xcc))?;
                Some(Value::Integer(i64::try_from(number).ok()?))
            }
            0xd0..=0xd3 => {
                let size = 1 << (tag - 0xd0);
                let unused = 64 - 8 * size as u32;
                Some(Value::Integer(
                    (self.number(size)? << unused) as i64 >> unused,
                ))
            }
            0xa0..=0xbf => self.string(tag & 31),
            0xd9..=0xdb => {
                let length = self.number(1 << (tag - 0xd9))?;
                self.string(length)
            }
            0x90..=0x9f => self.array(tag & 15, depth),
            0xdc | 0xdd => {
                let count = self.number(2 << (tag - 0xdc))?;
                self.array(count, depth)
            }
            0x80..=0x8f => self.map(tag & 15, depth),
            0xde | 0xdf => {
                let count = self.number(2 << (tag - 0xde))?;
                self.map(count, depth)
            }
            _ => None,
        }
    }

    fn string(&mut self, length: u64) -> Option<Value> {
        let bytes = self.take(usize::try_from(length).ok()?)?;
        Some(Value::String(String::from_utf8_lossy(bytes).into_owned()))
    }

    fn array(&mut self, count: u64, depth: u32) -> Option<Value> {
        (0..count)
            .map(|_| self.value(depth + 1))
            .collect::<Option<_>>()
            .map(Value::Array)
    }

    fn map(&mut self, count: u64, depth: u32) -> Option<Value> {
        (0..count)
            .map(|_| Some((self.value(depth + 1)?, self.value(depth + 1)?)))
            .collect::<Option<_>>()
            .map(Value::Map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_each_form_of_a_number() {
        let cases: [(&[u8], i64); 9] = [
            (&[0x7f], 127),
            (&[0xff], -1),
            (&[0xc3], 1),
            (&[0xcc, 200], 200),
            (&[0xcd, 1, 0], 256),
            (&[0xce, 0, 1, 0, 0], 65536),
            (&[0xd0, 0x80], -128),
            (&[0xd1, 0xff, 0xfe], -2),
            (&[0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd], -3),
        ];
        for (bytes, number) in cases {
            assert_eq!(
                Value::decode(bytes),
                Some(Value::Integer(number)),
                "{bytes:x?}"
            );
        }
    }

    #[test]
    fn looks_up_map_entries() {
        // {"a": ["bc"], "n": 5}
        let bytes = [0x82, 0xa1, b'a', 0x91, 0xa2, b'b', b'c', 0xa1, b'n', 5];
        let value = Value::decode(&bytes).unwrap();
        assert_eq!(value.array("a"), [Value::String("bc".into())]);
        assert_eq!(value.number("n"), Some(5));
        assert_eq!(value.string("n"), None);
        assert_eq!(value.get("x"), None);
    }

    #[test]
    fn refuses_cut_and_endless_input() {
        let whole = [0x82, 0xa1, b'a', 0x91, 0xa2, b'b', b'c', 0xa1, b'n', 5];
        for length in 0..whole.len() {
            assert_eq!(Value::decode(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(Value::decode(&[0x91; 100]), None);
        assert_eq!(Value::decode(&[0xdd, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
