//! Times as text: `2.8 us`. They are read without floating point, so that a written time comes back
//! to the picosecond.

use super::Time;
use core::fmt;
use core::str::FromStr;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Units, longest first, and the picoseconds in each.
const UNITS: [(&str, u64); 5] =
    [("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];

/// A text that is not one of a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no time: write a number of s, ms, us, ns or ps, as \"2.8 us\", in whole picoseconds"
)]
pub struct NotATime(String);

impl Time {
    /// The text that is read back as the same time, in the largest unit that needs no more than
    /// three decimals.
    pub(crate) fn exact(self) -> String {
        if self == Self::NEVER {
            return "never".into();
        }
        let picos = self.as_picos();
        let fits = |unit: u64| picos >= unit && (picos % unit * 1_000).is_multiple_of(unit);
        let (name, unit) = UNITS.into_iter().find(|&(_, unit)| fits(unit)).unwrap_or(("ns", 1_000));
        let decimals = format!("{:03}", (picos % unit) * 1_000 / unit);
        match decimals.trim_end_matches('0') {
            "" => format!("{} {name}", picos / unit),
            decimals => format!("{}.{decimals} {name}", picos / unit),
        }
    }
}

/// Picoseconds of `number` times `unit`, if they are whole and fit.
fn picos(number: &str, unit: u64) -> Option<u64> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    if !digits(whole) || !digits(decimals) {
        return None;
    }
    let mut total = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut place = unit;
    for digit in decimals.bytes().map(|byte| u64::from(byte - b'0')) {
        // Each digit must be whole picoseconds.
        if digit != 0 && !place.is_multiple_of(10) {
            return None;
        }
        place /= 10;
        total = total.checked_add(digit * place)?;
    }
    Some(total)
}

impl FromStr for Time {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        if text == "never" {
            return Ok(Self::NEVER);
        }
        let number = text.trim_end_matches(|letter: char| letter.is_alphabetic());
        let name = &text[number.len()..];
        let found =
            UNITS.into_iter().find(|&(unit, _)| unit == name || (unit == "us" && name == "µs"));
        found
            .and_then(|(_, unit)| picos(number.trim(), unit))
            .map(Self::picos)
            .ok_or_else(|| NotATime(text.into()))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time as \"2.8 us\", or whole picoseconds")
            }

            fn visit_u64<E: Error>(self, picos: u64) -> Result<Time, E> {
                Ok(Time::picos(picos))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read() {
        let cases = [
            ("2.8 us", Time::nanos(2_800)),
            ("0.27 ns", Time::picos(270)),
            ("3 µs", Time::micros(3)),
            ("10ms", Time::millis(10)),
            ("1.500000000001 s", Time::picos(1_500_000_000_001)),
            ("0 ns", Time::ZERO),
            ("never", Time::NEVER),
        ];
        for (text, time) in cases {
            assert_eq!(text.parse(), Ok(time), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "5",
            "ns",
            "5 parsecs",
            "-1 ns",
            "1e3 ns",
            "0.5 ps",
            "1.2.3 ns",
            "99999999 s",
            "5 NS",
        ] {
            assert_eq!(text.parse::<Time>(), Err(NotATime(text.into())), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_exact_text_comes_back(picos in prop_oneof![any::<u64>(), 0..10_000_000_u64]) {
            let time = Time::picos(picos);
            prop_assert_eq!(time.exact().parse(), Ok(time));
        }
    }
}
