//! Figures of cells about which claims are made.

use threadtoll_record::{Ns, Record};

use crate::quotient::Quotient;
use crate::units::{
    digits, digits_range, long_time, per_second, range_per_second, time, time_range,
};

/// A kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    OneWay,
    Rate,
    /// Time until the last message of a burst was received.
    LastOfBurst,
    /// CPU time for a billion messages; `None` for a saturated queue.
    BillionMessages,
    /// Number of the two quantiles 99% and 99.9% that are abnormally long: 0, 1 or 2.
    AbnormalQuantiles,
    Speedup,
    SpeedupPerThread,
    TaskTime,
}

/// A figure with its 95% interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) value: f64,
    pub(super) interval95: [f64; 2],
}

impl Measured {
    fn of(value: impl Into<f64>, interval95: [impl Into<f64>; 2], factor: f64) -> Option<Self> {
        let value = factor * value.into();
        Some(Measured { value, interval95: interval95.map(|bound| factor * bound.into()) })
    }
}

impl Figure {
    pub(super) fn of(self, record: &Record) -> Option<Measured> {
        let contention = record.figures.contention();
        let speedup =
            |factor| Measured::of(contention?.speedup?, contention?.speedup_interval95?, factor);
        match self {
            Figure::OneWay => {
                Measured::of(record.one_way_p50()?, record.one_way_p50_interval95()?, 1.0)
            }
            Figure::Rate => Measured::of(record.rate_per_s?, record.interval95.rate_per_s?, 1.0),
            Figure::LastOfBurst => {
                let burst = record.figures.open_loop()?.burst?;
                Measured::of(burst.last_ns?, burst.last_interval95?, 1.0)
            }
            Figure::BillionMessages => {
                let found = &record.figures.open_loop()?.open_loop;
                let found = (!found.saturated).then_some(found)?;
                Measured::of(found.cpu_ns_per_message?, found.cpu_interval95?, 1e9)
            }
            Figure::AbnormalQuantiles => {
                let within = &record.interval95;
                let of = |interval: Option<[Ns; 2]>| Some(interval?.map(Ns::get));
                let interval95 = abnormal(of(within.p50)?, of(within.p99)?, of(within.p999))?;
                Measured::of(interval95[0], interval95, 1.0)
            }
            Figure::Speedup => speedup(1.0),
            Figure::SpeedupPerThread => speedup(1.0 / f64::from(record.cell.lock()?.threads)),
            Figure::TaskTime => {
                let tasks = record.cell.lock()?.tasks? as f64;
                Measured::of(contention?.total_s?, contention?.total_s_interval95?, 1e9 / tasks)
            }
        }
    }

    /// Ratio of a cell's figure to another's. For one-way medians it is the paired ratio; for other
    /// figures, which may be from different groups, it is bounded by the opposite ends of the two
    /// intervals.
    pub(super) fn ratio(self, record: &Record, other: &Record) -> Option<Measured> {
        if self == Figure::OneWay {
            let times = Quotient::of(record, other)?;
            return Measured::of(times.ratio, times.interval95, 1.0);
        }
        let (own, other) = (self.of(record)?, self.of(other)?);
        let ([low, high], [other_low, other_high]) = (own.interval95, other.interval95);
        Measured::of(own.value / other.value, [low / other_high, high / other_low], 1.0)
    }

    /// Text of a record's figure, without its interval.
    pub(super) fn text(self, record: &Record) -> Option<String> {
        let value = self.of(record)?.value;
        Some(match self {
            Figure::OneWay | Figure::LastOfBurst | Figure::TaskTime => time(value),
            Figure::BillionMessages => long_time(value),
            Figure::Rate => format!("{}/s", per_second(value)),
            Figure::Speedup | Figure::SpeedupPerThread => digits(value),
            Figure::AbnormalQuantiles => {
                let of = &record.quantiles;
                let all = [("p99", of.p99), ("p99.9", of.p999), ("median", of.p50)];
                let known = all.into_iter().filter_map(|(name, ns)| Some((name, ns?.get())));
                known
                    .map(|(name, ns)| format!("{name} {}", time(ns)))
                    .collect::<Vec<_>>()
                    .join(", ")
            }
        })
    }

    /// Text of the interval, unless the text of the figure makes it redundant.
    pub(super) fn range(self, interval95: [f64; 2]) -> Option<String> {
        match self {
            Figure::AbnormalQuantiles => None,
            Figure::Speedup | Figure::SpeedupPerThread => Some(digits_range(interval95)),
            Figure::Rate => Some(format!("{}/s", range_per_second(interval95))),
            _ => Some(time_range(interval95)),
        }
    }
}

/// A quantile is abnormally long if it exceeds this multiple of the median.
const ABNORMAL: f64 = 10.0;

/// Bounds on the number of abnormally long quantiles; `None` if too few messages were measured.
fn abnormal(median: [f64; 2], p99: [f64; 2], p999: Option<[f64; 2]>) -> Option<[f64; 2]> {
    let [least, most] = median.map(|ns| ABNORMAL * ns);
    if p99[0] > most {
        return Some([2.0, 2.0]);
    }
    let p999 = p999?;
    if p999[1] <= least {
        return Some([0.0, 0.0]);
    }
    let surely = if p999[0] > most { 1.0 } else { 0.0 };
    Some([surely, if p99[1] <= least { 1.0 } else { 2.0 }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_abnormal_as_far_as_their_intervals_tell() {
        let of = |p99, p999| abnormal([95.0, 105.0], p99, p999);
        assert_eq!(of([200.0, 300.0], Some([400.0, 900.0])), Some([0.0, 0.0]));
        assert_eq!(of([1_100.0, 1_200.0], None), Some([2.0, 2.0]));
        assert_eq!(of([200.0, 300.0], Some([1_100.0, 9e3])), Some([1.0, 1.0]));
        assert_eq!(of([200.0, 300.0], Some([900.0, 9e3])), Some([0.0, 1.0]));
        assert_eq!(of([900.0, 1_100.0], Some([2e3, 9e3])), Some([1.0, 2.0]));
        assert_eq!(of([200.0, 300.0], None), None, "too few messages");
    }
}
