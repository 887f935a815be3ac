//! Ratios of one-way medians, with intervals.

use std::fmt;

use threadtoll_record::{Record, compare};

use crate::units::{digits_range, ratio};

/// Ratio of a record’s one-way median to another’s, with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quotient {
    pub(crate) ratio: f64,
    pub(crate) interval95: [f64; 2],
}

impl Quotient {
    /// The paired ratio, if there are enough pairs for a verdict. Otherwise the quotient of both
    /// medians, with the quotients of their intervals' far ends, which is wider than needed.
    pub(crate) fn of(record: &Record, base: &Record) -> Option<Self> {
        let paired =
            Self::paired(record, base).or_else(|| Some(Self::paired(base, record)?.inverse()));
        paired.or_else(|| Self::unpaired(record, base)).filter(|quotient| {
            quotient.interval95.iter().chain([&quotient.ratio]).all(|x| x.is_finite() && *x > 0.0)
        })
    }

    fn paired(record: &Record, base: &Record) -> Option<Self> {
        let against = record.against.iter().find(|against| {
            against.cell == base.cell
                && against.of == "one_way.p50"
                && against.blocks as usize >= compare::PAIRS
        })?;
        Some(Quotient { ratio: against.ratio.get(), interval95: against.interval95.map(f64::from) })
    }

    fn unpaired(record: &Record, base: &Record) -> Option<Self> {
        let ([low, high], [base_low, base_high]) =
            (record.one_way_p50_interval95()?, base.one_way_p50_interval95()?);
        Some(Quotient {
            ratio: record.one_way_p50()? / base.one_way_p50()?,
            interval95: [low / base_high, high / base_low],
        })
    }

    pub(crate) fn inverse(self) -> Self {
        let [low, high] = self.interval95;
        Quotient { ratio: 1.0 / self.ratio, interval95: [1.0 / high, 1.0 / low] }
    }

    pub(crate) fn is_above_1(&self) -> bool {
        self.interval95[0] > 1.0
    }

    pub(crate) fn is_below_1(&self) -> bool {
        self.interval95[1] < 1.0
    }

    /// Returns `true` if the interval does not contain 1.
    pub(crate) fn differs(&self) -> bool {
        self.is_above_1() || self.is_below_1()
    }
}

/// `1.61× (1.60–1.62)`.
impl fmt::Display for Quotient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", ratio(self.ratio), digits_range(self.interval95))
    }
}
