//! A distribution of times in picoseconds with three significant digits, up to 60 seconds.
//!
//! The counting is [HdrHistogram](http://hdrhistogram.org)'s, and so is the encoded form (V2, compressed with zlib, in
//! base64): other tools read it. What is read back is checked before it is unpacked, because it may come from anywhere.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest time that a histogram holds, in picoseconds; longer ones are counted as this one.
const LONGEST_PS: u64 = 60_000_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// More than a histogram with our range can need when every bucket is counted.
const MAX_PAYLOAD: u64 = 1 << 20;

/// A distribution of times.
///
/// Two histograms are equal if they hold the same counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
}

/// Why an encoded histogram was rejected.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HistogramError {
    /// The encoding or unit has another name than ours.
    #[error("the histogram's encoding is “{0}”, not “HdrHistogram-V2-zlib-base64” in “ps”")]
    Encoding(String),
    /// It is not base64, or what it holds is no compressed V2 histogram.
    #[error("the histogram's data is damaged ({0})")]
    Damaged(String),
    /// It is a histogram of another range or precision.
    #[error("the histogram has another range or precision than threadtoll's")]
    Foreign,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Makes an empty one.
    pub fn new() -> Self {
        let counts = match hdrhistogram::Histogram::new_with_bounds(1, LONGEST_PS, SIGNIFICANT_DIGITS) {
            Ok(counts) => counts,
            Err(error) => unreachable!("the bounds are constants that HdrHistogram accepts: {error}"),
        };
        Histogram { counts }
    }

    /// Counts one value in picoseconds.
    pub fn record_ps(&mut self, ps: u64) {
        self.counts.saturating_record(ps.min(LONGEST_PS));
    }

    /// Adds all that `other` holds.
    pub fn add(&mut self, other: &Histogram) {
        if let Err(error) = self.counts.add(&other.counts) {
            unreachable!("both histograms have the same bounds: {error}");
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The value below or at which the share `quantile` (0..=1) of all values lies, in nanoseconds: the upper bound of
    /// its bucket's middle, so at most 0.05% from the true value. Null if it is empty.
    pub fn quantile_ns(&self, quantile: f64) -> Option<f64> {
        if self.counts.is_empty() {
            return None;
        }
        let value = self.counts.value_at_quantile(quantile);
        Some(self.counts.median_equivalent(value) as f64 / 1000.0)
    }

    /// The counted buckets in ascending order: the middle of each in picoseconds, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter_recorded()
            .map(|step| (self.counts.median_equivalent(step.value_iterated_to()), step.count_since_last_iteration()))
    }

    /// The encoded form: V2, zlib, base64.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        if let Err(error) = V2DeflateSerializer::new().serialize(&self.counts, &mut bytes) {
            unreachable!("a histogram is written to memory: {error}");
        }
        BASE64.encode(bytes)
    }

    /// Reads the encoded form.
    ///
    /// # Errors
    ///
    /// If it is damaged, or has another range or precision. At most 1 MiB is ever unpacked.
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        let damaged = |what: &str| HistogramError::Damaged(what.to_string());
        let bytes = BASE64.decode(text).map_err(|_| damaged("not base64"))?;
        // The compressed form is a cookie, a length, and the compressed V2 form; that one's header tells the range.
        let compressed = bytes.get(8..).ok_or_else(|| damaged("too short"))?;
        let mut plain = Vec::new();
        flate2::read::ZlibDecoder::new(compressed)
            .take(MAX_PAYLOAD + 1)
            .read_to_end(&mut plain)
            .map_err(|_| damaged("not zlib"))?;
        if plain.len() as u64 > MAX_PAYLOAD {
            return Err(damaged("too large"));
        }
        let field = |at: usize| plain.get(at..at + 8).and_then(|field| field.try_into().ok()).map(u64::from_be_bytes);
        let digits = plain.get(12..16).and_then(|field| field.try_into().ok()).map(u32::from_be_bytes);
        if (digits, field(16), field(24)) != (Some(u32::from(SIGNIFICANT_DIGITS)), Some(1), Some(LONGEST_PS)) {
            return Err(HistogramError::Foreign);
        }
        let counts =
            Deserializer::new().deserialize(&mut plain.as_slice()).map_err(|error| damaged(&error.to_string()))?;
        Ok(Histogram { counts })
    }
}

const ENCODING: &str = "HdrHistogram-V2-zlib-base64";
const VALUE_UNIT: &str = "ps";

/// The form in which a histogram stands in a file.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Encoded {
    /// Always `HdrHistogram-V2-zlib-base64`.
    encoding: String,
    /// Always `ps`.
    value_unit: String,
    /// The encoded counts.
    data: String,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Encoded { encoding: ENCODING.into(), value_unit: VALUE_UNIT.into(), data: self.encode() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded = Encoded::deserialize(deserializer)?;
        if encoded.encoding != ENCODING || encoded.value_unit != VALUE_UNIT {
            let name = format!("{} in {}", encoded.encoding, encoded.value_unit);
            return Err(serde::de::Error::custom(HistogramError::Encoding(name)));
        }
        Histogram::decode(&encoded.data).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Encoded::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record_ps(*value));
        histogram
    }

    #[test]
    fn quantiles_keep_three_digits() {
        let histogram = of(&(1..=100_000).map(|ns| ns * 1000).collect::<Vec<_>>());
        for (quantile, ns) in [(0.5, 50_000.0), (0.99, 99_000.0), (0.999, 99_900.0)] {
            let found = histogram.quantile_ns(quantile).unwrap();
            assert!((found / ns - 1.0).abs() < 1e-3, "{quantile}: {found}");
        }
        assert_eq!(Histogram::new().quantile_ns(0.5), None);
    }

    #[test]
    fn an_encoded_histogram_comes_back_equal() {
        let histogram = of(&[0, 1, 31_400, 31_400, 9_999_999, LONGEST_PS]);
        assert_eq!(Histogram::decode(&histogram.encode()).unwrap(), histogram);
        assert_eq!(Histogram::decode(&Histogram::new().encode()).unwrap(), Histogram::new());
    }

    #[test]
    fn values_beyond_the_range_count_as_the_longest() {
        assert_eq!(of(&[u64::MAX]), of(&[LONGEST_PS]));
    }

    #[test]
    fn the_encoding_is_the_one_that_other_tools_read() {
        // "HISTF" is how every V2 compressed histogram in base64 begins.
        assert!(of(&[5]).encode().starts_with("HISTF"));
    }

    #[test]
    fn damaged_foreign_and_swollen_data_are_rejected() {
        assert_eq!(Histogram::decode("§"), Err(HistogramError::Damaged("not base64".into())));
        assert_eq!(Histogram::decode(""), Err(HistogramError::Damaged("too short".into())));
        assert_eq!(Histogram::decode(&BASE64.encode([7u8; 64])), Err(HistogramError::Damaged("not zlib".into())));
        let mut other = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 40, 2).unwrap();
        other.record(5).unwrap();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&other, &mut bytes).unwrap();
        assert_eq!(Histogram::decode(&BASE64.encode(bytes)), Err(HistogramError::Foreign));
        let mut bomb = vec![0u8; 8];
        let mut zlib = flate2::write::ZlibEncoder::new(&mut bomb, flate2::Compression::best());
        std::io::Write::write_all(&mut zlib, &vec![0u8; 64 << 20]).unwrap();
        zlib.finish().unwrap();
        assert!(bomb.len() < 100_000);
        assert_eq!(Histogram::decode(&BASE64.encode(bomb)), Err(HistogramError::Damaged("too large".into())));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_decoding_panic(text in "[A-Za-z0-9+/=]{0,200}") {
            let _ = Histogram::decode(&text);
        }

        #[test]
        fn no_damage_makes_decoding_panic(values in proptest::collection::vec(0u64..u64::MAX, 0..50), at in 0usize..200, bit in 0u8..8) {
            let mut bytes = BASE64.decode(of(&values).encode()).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let _ = Histogram::decode(&BASE64.encode(bytes));
        }
    }
}
