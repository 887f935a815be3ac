use std::fmt;

use threadtoll_record::{Against, Cell, Record, Verdict, compare};

use crate::label::plural;
use crate::units::{digits_range, ratio};

/// Ratio of a record’s one-way median to another’s, with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quotient {
    pub(crate) ratio: f64,
    pub(crate) interval95: [f64; 2],
    /// Number of pairs, if too few pairs are the only obstacle to a verdict.
    few_pairs: Option<usize>,
}

impl Quotient {
    /// The paired ratio or, without pairs, the quotient of the two records' ratios to the
    /// reference.
    ///
    /// The interval of the quotient is the widest that the intervals of the two ratios allow,
    /// because the machine may have been slower while one record was measured. If there are too few
    /// pairs for a verdict, the interval covers those of the paired ratio and of the quotient.
    ///
    /// Returns `None` if the reference was in different regimes.
    pub(crate) fn of(record: &Record, base: &Record) -> Option<Self> {
        let paired = Self::paired(record, base).or_else(|| {
            let (inverse, pairs) = Self::paired(base, record)?;
            Some((inverse.inverse(), pairs))
        });
        let quotient = match (paired, Self::unpaired(record, base)) {
            (Some((paired, pairs)), Some(unpaired)) if pairs < compare::PAIRS => {
                let ([a, b], [c, d]) = (paired.interval95, unpaired.interval95);
                let few_pairs = (!contains_1(paired.interval95)).then_some(pairs);
                Some(Quotient { interval95: [a.min(c), b.max(d)], few_pairs, ..paired })
            }
            (Some((paired, _)), _) => Some(paired),
            (None, unpaired) => unpaired,
        };
        let known = |value: &f64| value.is_finite() && *value > 0.0;
        quotient.filter(|found| found.interval95.iter().chain([&found.ratio]).all(known))
    }

    fn paired(record: &Record, base: &Record) -> Option<(Self, usize)> {
        let is_base = |cell: &Cell, of: &str| *cell == base.cell && of == "one_way.p50";
        let against = record.against.iter().find(|against| is_base(&against.cell, &against.of))?;
        let interval95 = against.interval95.map(f64::from);
        let quotient = Quotient { ratio: against.ratio.get(), interval95, few_pairs: None };
        Some((quotient, against.blocks as usize))
    }

    fn unpaired(record: &Record, base: &Record) -> Option<Self> {
        let (own, other) = match (to_reference(record), to_reference(base)) {
            (Some(own), Some(other)) if own.cell == other.cell => (own, other),
            _ => return Self::of_medians(record, base),
        };
        let reference =
            |record: &Record, against: &Against| Some(record.one_way_p50()? / against.ratio.get());
        let apart = reference(record, own)? / reference(base, other)?;
        if !(1.0 / compare::ALIKE..=compare::ALIKE).contains(&apart) {
            return None;
        }
        let ([low, high], [base_low, base_high]) =
            (own.interval95.map(f64::from), other.interval95.map(f64::from));
        Some(Quotient {
            ratio: own.ratio.get() / other.ratio.get(),
            interval95: [low / base_high, high / base_low],
            few_pairs: None,
        })
    }

    fn of_medians(record: &Record, base: &Record) -> Option<Self> {
        let ([low, high], [base_low, base_high]) =
            (record.one_way_p50_interval95()?, base.one_way_p50_interval95()?);
        Some(Quotient {
            ratio: record.one_way_p50()? / base.one_way_p50()?,
            interval95: [low / base_high, high / base_low],
            few_pairs: None,
        })
    }

    pub(crate) fn inverse(self) -> Self {
        let [low, high] = self.interval95;
        Quotient { ratio: 1.0 / self.ratio, interval95: [1.0 / high, 1.0 / low], ..self }
    }

    pub(crate) fn is_below_1(&self) -> bool {
        self.interval95[1] < 1.0
    }

    /// Few pairs need no special treatment: [`Quotient::of`] has already widened their interval.
    pub(crate) fn verdict(&self) -> Verdict {
        compare::verdict(self.interval95, compare::PAIRS)
    }
}

fn contains_1([low, high]: [f64; 2]) -> bool {
    low <= 1.0 && 1.0 <= high
}

fn to_reference(record: &Record) -> Option<&Against> {
    record.against.first().filter(|against| &*against.of == "one_way.p50")
}

/// Such as `1.61× (1.60–1.62)`; if more pairs would allow a verdict, such as `0.850× (0.700–1.10,
/// only 9 pairs)`.
impl fmt::Display for Quotient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let few = self.few_pairs.filter(|_| contains_1(self.interval95));
        let few = few.map(|pairs| format!(", only {}", plural(pairs as u64, "pair")));
        let few = few.unwrap_or_default();
        write!(f, "{} ({}{few})", ratio(self.ratio), digits_range(self.interval95))
    }
}
