//! The predicted speed-up by number of threads, with the present point.

use maud::{Markup, html};
use threadtoll_record::profile::Lock;

use super::figure;
use crate::units::digits;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 46.0;

/// Number of threads and speed-up, with the ends of its interval.
struct Point {
    threads: f64,
    speedup: f64,
    ends: [f64; 2],
}

/// The largest values of both axes.
struct Scale {
    threads: f64,
    speedup: f64,
}

impl Scale {
    fn x(&self, threads: f64) -> f64 {
        LEFT + threads / self.threads * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, speedup: f64) -> f64 {
        HEIGHT - BOTTOM - speedup / self.speedup * (HEIGHT - TOP - BOTTOM)
    }

    fn at(&self, threads: f64, speedup: f64) -> String {
        format!("{},{}", figure(self.x(threads)), figure(self.y(speedup)))
    }
}

/// Draws the curve, or nothing if too few points were predicted.
pub(super) fn curve(lock: &Lock) -> Markup {
    let mut points: Vec<Point> = lock
        .predicted
        .iter()
        .map(|point| Point {
            threads: f64::from(point.threads),
            speedup: point.speedup.get(),
            ends: point
                .interval95
                .map_or([point.speedup.get(); 2], |it| [it.low().get(), it.high().get()]),
        })
        .collect();
    points.sort_by(|a, b| a.threads.total_cmp(&b.threads));
    if points.len() < 2 {
        return html! {};
    }
    let threads = f64::from(lock.threads);
    let present = lock.efficiency.map(|efficiency| (threads, efficiency.get() * threads));
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::MIN_POSITIVE, f64::max);
    let scale = Scale {
        threads: largest(&mut points.iter().map(|point| point.threads).chain([threads])),
        speedup: 1.08
            * largest(
                &mut points.iter().map(|point| point.ends[1]).chain(present.map(|now| now.1)),
            ),
    };
    let line: Vec<String> =
        points.iter().map(|point| scale.at(point.threads, point.speedup)).collect();
    let band = points.iter().map(|point| scale.at(point.threads, point.ends[1]));
    let back = points.iter().rev().map(|point| scale.at(point.threads, point.ends[0]));
    let band: Vec<String> = band.chain(back).collect();
    let ideal = scale.threads.min(scale.speedup);
    html! {
        h4 { "Speed-up by number of threads" } "\n"
        div class="scroll drawing small" {
            svg class="curve" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label="Predicted speed-up by number of threads, with the present point" {
                @for tick in ticks(scale.speedup) {
                    @let y = scale.y(tick);
                    line class="grid" x1=(figure(LEFT)) x2=(figure(WIDTH - RIGHT)) y1=(figure(y)) y2=(figure(y)) {}
                    text class="tick end" x=(figure(LEFT - 8.0)) y=(figure(y + 4.0)) { (tick) }
                }
                @for tick in ticks(scale.threads) {
                    text class="tick middle" x=(figure(scale.x(tick))) y=(figure(HEIGHT - BOTTOM + 18.0)) { (tick) }
                }
                text class="tick middle" x=(figure((LEFT + WIDTH - RIGHT) / 2.0)) y=(figure(HEIGHT - 8.0)) { "threads" }
                polyline class="ideal" points={ (scale.at(0.0, 0.0)) " " (scale.at(ideal, ideal)) } {}
                polygon class="band" points=(band.join(" ")) {}
                polyline class="predicted" points=(line.join(" ")) {}
                @if let Some((threads, speedup)) = present {
                    @let (x, y) = (scale.x(threads), scale.y(speedup));
                    @let late = x > WIDTH * 0.7;
                    circle class="now" cx=(figure(x)) cy=(figure(y)) r="5" {}
                    text class=(if late { "now end" } else { "now" }) x=(figure(if late { x - 10.0 } else { x + 10.0 })) y=(figure(y + 18.0)) {
                        "now: " (digits(speedup)) " with " (lock.threads)
                    }
                }
            }
        } "\n"
        p class="note" { "Relative to one thread that never waits. Line and band: predicted, with its 95% interval; dashed: threads that never wait." } "\n"
    }
}

/// Round values up to `most`, at most six of them.
fn ticks(most: f64) -> Vec<f64> {
    let power = 10_f64.powf((most / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| most / step <= 5.0)
        .unwrap_or(most);
    let mut ticks: Vec<f64> = (0..=5).map(|nth| f64::from(nth) * step).collect();
    ticks.retain(|tick| *tick <= most && tick.is_finite());
    ticks
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn axes_have_round_ticks() {
        assert_eq!(ticks(8.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(ticks(3.4), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(ticks(1000.0), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert!(ticks(1e18).len() <= 6 && ticks(f64::MIN_POSITIVE).len() <= 6);
    }
}
