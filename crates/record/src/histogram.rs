//! A distribution of times in picoseconds with three significant digits, up to 60 seconds.
//!
//! The counts and the encoded form (V2, compressed with zlib, in Base64) are those of
//! [HdrHistogram](http://hdrhistogram.org), so that other tools can read them. Encoded data may
//! come from anywhere, so it is checked before it is decompressed.

use std::cell::{Cell, RefCell};
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::{Compression, write::ZlibEncoder};
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest time that a histogram stores, in picoseconds; longer times are clamped to it.
const MAX_PS: u64 = 60_000_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// Upper bound on the decompressed size of a histogram in which every bucket is used.
const MAX_PAYLOAD: u64 = 1 << 20;

/// Maximum number of values. No real histogram has more, and a sum of this many values cannot
/// overflow.
const MAX_VALUES: u64 = 1 << 44;
const COOKIE: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();
/// Length of the header of the plain V2 form: cookie, length, offset, digits, bounds and ratio.
const HEADER: usize = 40;
/// Minimum number of values beyond a quantile for it to be reported.
const BEYOND: f64 = 20.0;

/// A distribution of times.
///
/// Two histograms are equal if they contain the same counts.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Counts,
}

type All = hdrhistogram::Histogram<u64>;

/// Counts of all buckets, or only of the used ones. All buckets take a quarter of a megabyte, and a
/// long run keeps tens of thousands of histograms.
#[derive(Clone, Debug)]
enum Counts {
    All(Box<All>),
    /// Midpoint (in picoseconds, ascending) and count of each used bucket.
    Counted(Vec<(u64, u64)>),
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.buckets().eq(other.buckets())
    }
}

/// Reason why an encoded histogram was rejected.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HistogramError {
    /// The encoding or unit is not the expected one.
    #[error(
        "unsupported histogram {0}; expected encoding “HdrHistogram-V2-zlib-base64” with unit “ps”"
    )]
    Encoding(String),
    /// The data is not Base64, or not a compressed V2 histogram.
    #[error("the histogram's data is damaged ({0})")]
    Damaged(String),
    /// The range or precision is not the expected one.
    #[error("the histogram's range or precision differs from that of threadtoll")]
    Foreign,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Makes an empty histogram.
    pub fn new() -> Self {
        Histogram { counts: Counts::Counted(Vec::new()) }
    }

    /// Counts one value, in picoseconds. Values above 60 s count as 60 s.
    pub fn record_ps(&mut self, ps: u64) {
        self.all().saturating_record(ps.min(MAX_PS));
    }

    /// Adds all values of `other`.
    pub fn add(&mut self, other: &Histogram) {
        let all = self.all();
        match &other.counts {
            Counts::All(counts) => {
                if let Err(error) = all.add(&**counts) {
                    unreachable!("both histograms have the same bounds: {error}");
                }
            }
            Counts::Counted(buckets) => {
                buckets.iter().for_each(|(value, count)| all.saturating_record_n(*value, *count));
            }
        }
    }

    /// Releases the memory of unused buckets, for a histogram that is kept but gets no more values.
    #[must_use]
    pub fn packed(self) -> Self {
        let counted = self.buckets().collect();
        if let Counts::All(all) = self.counts {
            put_by(all);
        }
        Histogram { counts: Counts::Counted(counted) }
    }

    fn all(&mut self) -> &mut All {
        if let Counts::Counted(buckets) = &self.counts {
            self.counts = Counts::All(all_of(buckets));
        }
        match &mut self.counts {
            Counts::All(counts) => counts,
            Counts::Counted(_) => unreachable!("it was just replaced"),
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        match &self.counts {
            Counts::All(counts) => counts.len(),
            Counts::Counted(buckets) => buckets.iter().map(|(_, count)| count).sum(),
        }
    }

    /// Returns `true` if at least 20 values lie beyond the quantile.
    pub fn shows(&self, quantile: f64) -> bool {
        // The tolerance: 200,000 × (1 - 0.9999) is slightly less than 20 in floating point.
        self.count() as f64 * (1.0 - quantile) >= BEYOND - 1e-6
    }

    /// The quantile (0..=1) in nanoseconds, at most 0.05% from the true value; `None` if the
    /// histogram is empty.
    pub fn quantile_ns(&self, quantile: f64) -> Option<f64> {
        let rank = ((self.count() as f64 * quantile).ceil() as u64).max(1);
        let mut seen = 0;
        let mut buckets = self.buckets();
        let (ps, _) = buckets.find(|(_, count)| {
            seen += count;
            seen >= rank
        })?;
        Some(ps as f64 / 1000.0)
    }

    /// Midpoint, in picoseconds, and count of each used bucket, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (all, counted) = match &self.counts {
            Counts::All(counts) => (Some(counts), None),
            Counts::Counted(buckets) => (None, Some(buckets)),
        };
        let all = all.into_iter().flat_map(|counts| {
            counts.iter_recorded().map(|step| {
                (
                    counts.median_equivalent(step.value_iterated_to()),
                    step.count_since_last_iteration(),
                )
            })
        });
        all.chain(counted.into_iter().flatten().copied())
    }

    /// Encodes the histogram as V2, compressed with zlib, in Base64.
    pub fn encode(&self) -> String {
        let bytes = match &self.counts {
            Counts::All(all) => deflated(all),
            Counts::Counted(buckets) => {
                let all = all_of(buckets);
                let bytes = deflated(&all);
                put_by(all);
                bytes
            }
        };
        BASE64.encode(bytes)
    }

    /// Decodes the text that [`encode`](Self::encode) returns.
    ///
    /// # Errors
    ///
    /// If the data is damaged, or if it has another range or precision. At most 1 MiB is
    /// decompressed.
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        let damaged = |what: &str| HistogramError::Damaged(what.to_string());
        let bytes = BASE64.decode(text).map_err(|_| damaged("not base64"))?;
        // The data is a cookie, a length, and the plain V2 form compressed by zlib. The header of
        // the plain form contains the range.
        let compressed = bytes.get(8..).ok_or_else(|| damaged("too short"))?;
        let mut plain = Vec::new();
        flate2::read::ZlibDecoder::new(compressed)
            .take(MAX_PAYLOAD + 1)
            .read_to_end(&mut plain)
            .map_err(|_| damaged("not zlib"))?;
        if plain.len() as u64 > MAX_PAYLOAD {
            return Err(damaged("too large"));
        }
        let field = |at: usize| {
            plain.get(at..at + 8).and_then(|field| field.try_into().ok()).map(u64::from_be_bytes)
        };
        let digits =
            plain.get(12..16).and_then(|field| field.try_into().ok()).map(u32::from_be_bytes);
        if (digits, field(16), field(24))
            != (Some(u32::from(SIGNIFICANT_DIGITS)), Some(1), Some(MAX_PS))
        {
            return Err(HistogramError::Foreign);
        }
        // An unchecked length would make the decoder reserve gigabytes.
        let length =
            plain.get(4..8).and_then(|field| field.try_into().ok()).map(u32::from_be_bytes);
        if length.is_none_or(|length| length as usize > plain.len().saturating_sub(HEADER)) {
            return Err(damaged("its length is wrong"));
        }
        let all: All = Deserializer::new()
            .deserialize(&mut plain.as_slice())
            .map_err(|error| damaged(&error.to_string()))?;
        if all.len() > MAX_VALUES {
            return Err(damaged("it holds impossibly many values"));
        }
        let read = Histogram { counts: Counts::All(Box::new(all)) };
        Ok(Histogram { counts: Counts::Counted(read.buckets().collect()) })
    }
}

thread_local! {
    /// An empty histogram with all buckets, kept for reuse: allocating a quarter of a megabyte for
    /// each block of a run would take longer than counting.
    static SPARE: Cell<Option<Box<All>>> = const { Cell::new(None) };
    /// Kept for reuse, like [`SPARE`].
    static ENCODER: RefCell<(V2Serializer, ZlibEncoder<Vec<u8>>)> = RefCell::new((
        V2Serializer::new(),
        ZlibEncoder::new(Vec::new(), Compression::default()),
    ));
}

fn deflated(all: &All) -> Vec<u8> {
    ENCODER.with_borrow_mut(|(serializer, zlib)| {
        let mut plain = Vec::new();
        if let Err(error) = serializer.serialize(all, &mut plain) {
            unreachable!("a histogram is written to memory: {error}");
        }
        match zlib.write_all(&plain).and_then(|()| zlib.reset(Vec::new())) {
            Ok(zlib) => [&COOKIE, &(zlib.len() as u32).to_be_bytes(), &*zlib].concat(),
            Err(error) => unreachable!("a histogram is compressed in memory: {error}"),
        }
    })
}

fn all_of(buckets: &[(u64, u64)]) -> Box<All> {
    let mut all =
        SPARE.take().unwrap_or_else(|| match All::new_with_bounds(1, MAX_PS, SIGNIFICANT_DIGITS) {
            Ok(all) => Box::new(all),
            Err(error) => {
                unreachable!("the bounds are constants that HdrHistogram accepts: {error}")
            }
        });
    buckets.iter().for_each(|(value, count)| all.saturating_record_n(*value, *count));
    all
}

fn put_by(mut all: Box<All>) {
    all.reset();
    SPARE.set(Some(all));
}

const ENCODING: &str = "HdrHistogram-V2-zlib-base64";
const VALUE_UNIT: &str = "ps";

/// A histogram, as written to files.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Encoded {
    /// Always `HdrHistogram-V2-zlib-base64`.
    encoding: String,
    /// Always `ps`.
    value_unit: String,
    /// The counts, encoded as `encoding` says.
    data: String,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Encoded { encoding: ENCODING.into(), value_unit: VALUE_UNIT.into(), data: self.encode() }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded = Encoded::deserialize(deserializer)?;
        if encoded.encoding != ENCODING || encoded.value_unit != VALUE_UNIT {
            let name =
                format!("encoding “{}” with unit “{}”", encoded.encoding, encoded.value_unit);
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
    use hdrhistogram::serialization::V2DeflateSerializer;

    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record_ps(*value));
        histogram
    }

    #[test]
    fn a_quantile_is_shown_by_twenty_values_beyond_it() {
        let of = |values: u64| {
            let mut histogram = Histogram::new();
            (0..values).for_each(|_| histogram.record_ps(1000));
            histogram
        };
        assert!(of(200_000).shows(0.9999) && !of(199_990).shows(0.9999));
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
        let histogram = of(&[0, 1, 31_400, 31_400, 9_999_999, MAX_PS]);
        assert_eq!(Histogram::decode(&histogram.encode()).unwrap(), histogram);
        assert_eq!(Histogram::decode(&Histogram::new().encode()).unwrap(), Histogram::new());
    }

    #[test]
    fn values_beyond_the_range_count_as_the_longest() {
        assert_eq!(of(&[u64::MAX]), of(&[MAX_PS]));
    }

    #[test]
    fn the_encoding_is_the_one_that_other_tools_read() {
        // Every compressed V2 histogram begins with "HISTF" in Base64.
        assert!(of(&[5]).encode().starts_with("HISTF"));
    }

    #[test]
    fn damaged_foreign_and_swollen_data_are_rejected() {
        assert_eq!(Histogram::decode("§"), Err(HistogramError::Damaged("not base64".into())));
        assert_eq!(Histogram::decode(""), Err(HistogramError::Damaged("too short".into())));
        assert_eq!(
            Histogram::decode(&BASE64.encode([7u8; 64])),
            Err(HistogramError::Damaged("not zlib".into()))
        );
        let mut other = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 40, 2).unwrap();
        other.record(5).unwrap();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&other, &mut bytes).unwrap();
        assert_eq!(Histogram::decode(&BASE64.encode(bytes)), Err(HistogramError::Foreign));
        let mut bomb = vec![0u8; 8];
        let mut zlib = ZlibEncoder::new(&mut bomb, Compression::best());
        zlib.write_all(&vec![0u8; 64 << 20]).unwrap();
        zlib.finish().unwrap();
        assert!(bomb.len() < 100_000);
        assert_eq!(
            Histogram::decode(&BASE64.encode(bomb)),
            Err(HistogramError::Damaged("too large".into()))
        );
    }

    #[test]
    fn a_length_that_lies_reserves_no_memory() {
        let mut plain = Vec::new();
        V2Serializer::new().serialize(&all_of(&[(5, 1)]), &mut plain).unwrap();
        plain[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(
            decode_plain(&plain),
            Err(HistogramError::Damaged("its length is wrong".into()))
        );
    }

    #[test]
    fn counts_that_would_overflow_sums_are_rejected() {
        let too_many = Histogram { counts: Counts::Counted(vec![(100, MAX_VALUES), (2000, 1)]) };
        let rejected = HistogramError::Damaged("it holds impossibly many values".into());
        assert_eq!(Histogram::decode(&too_many.encode()), Err(rejected));
        let just_enough = Histogram { counts: Counts::Counted(vec![(100, MAX_VALUES)]) };
        assert_eq!(Histogram::decode(&just_enough.encode()).unwrap(), just_enough);
    }

    fn decode_plain(plain: &[u8]) -> Result<Histogram, HistogramError> {
        let mut bytes = vec![0u8; 8];
        let mut zlib = ZlibEncoder::new(&mut bytes, Compression::fast());
        zlib.write_all(plain).unwrap();
        zlib.finish().unwrap();
        Histogram::decode(&BASE64.encode(bytes))
    }

    proptest::proptest! {
        /// A histogram, packed or not, gives the same answers and encoding as hdrhistogram's.
        #[test]
        fn packing_changes_nothing(values in proptest::collection::vec(0u64..1 << 50, 1..80), quantile in 0.0f64..=1.0) {
            let histogram = of(&values);
            let packed = histogram.clone().packed();
            proptest::prop_assert_eq!(&packed, &histogram);
            proptest::prop_assert_eq!(packed.count(), histogram.count());
            proptest::prop_assert_eq!(packed.encode(), histogram.encode());
            let all = all_of(&values.iter().map(|value| ((*value).min(MAX_PS), 1)).collect::<Vec<_>>());
            let mut bytes = Vec::new();
            V2DeflateSerializer::new().serialize(&all, &mut bytes).unwrap();
            proptest::prop_assert_eq!(packed.encode(), BASE64.encode(bytes));
            let expected = all.median_equivalent(all.value_at_quantile(quantile)) as f64 / 1000.0;
            proptest::prop_assert_eq!(packed.quantile_ns(quantile), Some(expected));
            proptest::prop_assert_eq!(histogram.quantile_ns(quantile), Some(expected));
            let mut sum = packed.clone();
            sum.add(&histogram);
            let mut other = histogram.clone();
            other.add(&packed);
            proptest::prop_assert_eq!(&sum, &other);
            proptest::prop_assert_eq!(sum.count(), 2 * packed.count());
        }

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
