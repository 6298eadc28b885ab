//! Addresses in JSON: text such as `"0x7f31c0de0000"`. Most readers take a JSON number for a double, which is
//! exact only up to 2^53.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    // A registry has hundreds of addresses, which the program waits for at its end: the machinery of `format!` takes several
    // times as long.
    let mut text = *b"0x0000000000000000";
    let digits = 16 - (address.leading_zeros() as usize / 4).min(15);
    for (place, digit) in text[2..2 + digits].iter_mut().enumerate() {
        let value = (address >> (4 * (digits - 1 - place))) & 0xf;
        *digit = b"0123456789abcdef"[value as usize];
    }
    let text = str::from_utf8(&text[..2 + digits]).unwrap_or_default();
    serializer.serialize_str(text)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
    text.strip_prefix("0x")
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| Error::custom(format!("address {text:?}, expected such as \"0x7f00\"")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_have_as_many_digits_as_they_need() {
        #[derive(serde::Serialize)]
        struct Address(#[serde(with = "super")] u64);

        for address in [0, 1, 0xf, 0x10, 0x7f31_c0de_0040, 1 << 63, u64::MAX] {
            let text = serde_json::to_string(&Address(address)).unwrap();
            assert_eq!(text, format!("\"{address:#x}\""));
        }
    }
}
