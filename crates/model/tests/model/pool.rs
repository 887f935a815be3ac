//! Pools with arrivals: golden figures, the simulator against exact ones, limits.
//!
//! Golden figures of M/M/c and M/M/c/K were computed from their definitions, sums over all states,
//! in rational numbers or with 80 digits; those of M/D/1 from Erlang's alternating series of 1909,
//! `P(W ≤ t) = (1−ρ) Σ (ρ(k−t))ᵏ/k! exp(−ρ(k−t))` over `k ≤ t`, with 80 digits.

use threadtoll_model::pool::{self, Figure, PoolModel, Row, Rows};
use threadtoll_model::{MAX_SERVERS, Pool, Shape, erlang};

/// A pool with a mean hold time of one second, exponential or not, and this offered load.
fn pool(offered: f64, hold: &Shape) -> Pool {
    Pool::new(offered, hold.with_mean(1e9).unwrap())
}

fn exponential() -> Shape {
    Shape::exponential(1e9).unwrap()
}

fn fixed() -> Shape {
    Shape::fixed(1e9).unwrap()
}

fn row(pool: &Pool, servers: u32) -> Row {
    Rows::new(pool, false, 1).unwrap().row(servers).unwrap()
}

/// Seconds of a wait.
fn seconds(figure: Option<Figure>) -> f64 {
    figure.unwrap().value / 1e9
}

#[track_caller]
fn near(found: f64, golden: f64) {
    let digits = 1e-9 * golden.abs() + 1e-15;
    assert!((found - golden).abs() <= digits, "{found} is not {golden}");
}

#[test]
fn losses_are_those_of_the_published_table() {
    // The column of 1% of the table of Erlang's loss formula in V. B. Iversen, *Teletraffic
    // Engineering Handbook*, ITU-D study group 2: the load that this number of servers carries.
    for (servers, offered) in [
        (1, 0.0101),
        (2, 0.1526),
        (3, 0.4555),
        (4, 0.8694),
        (5, 1.3608),
        (10, 4.4612),
        (20, 12.031),
        (30, 20.337),
        (50, 37.901),
        (100, 84.064),
    ] {
        let blocking = erlang::blocking(offered, servers).unwrap();
        assert!((blocking / 0.01 - 1.0).abs() < 1e-3, "{servers}: {blocking}");
        let mut pool = pool(offered, &fixed());
        pool.places = Some(0);
        let row = row(&pool, servers);
        assert_eq!(row.model, PoolModel::Loss);
        near(row.refused_share.unwrap().value, blocking);
        near(row.in_use_mean.unwrap().value, offered * (1.0 - blocking));
        assert_eq!(seconds(row.wait_p99_ns), 0.0);
    }
}

#[test]
fn waits_of_many_servers_are_golden() {
    for (offered, servers, waiting) in [
        (6.0, 9, 0.195_980_912_695_745_7),
        (6.0, 11, 0.049_221_974_336_828_42),
        (4.4612, 10, 0.017_910_710_028_309_594),
        (84.064, 100, 0.059_604_895_802_809_13),
        (900.0, 1000, 0.000_592_669_966_378_781),
        (950.0, 1000, 0.068_253_415_377_141_1),
    ] {
        near(erlang::waiting(offered, servers).unwrap().unwrap(), waiting);
        let row = row(&pool(offered, &exponential()), servers);
        assert_eq!(row.model, PoolModel::Delay);
        near(row.wait_probability.unwrap().value, waiting);
        let spare = f64::from(servers) - offered;
        near(seconds(row.wait_mean_ns), waiting / spare);
        near(seconds(row.wait_p99_ns), (waiting / 0.01).ln().max(0.0) / spare);
    }
}

#[test]
fn waits_in_a_limited_queue_are_golden() {
    // Offered load, servers, places; share refused, share that waits, mean, p50, p99.
    #[rustfmt::skip]
    let table = [
        (6.0, 7, 10, [0.021_153_143_112_6, 0.543_664_740_007, 0.339_310_798_767, 0.081_658_343_561_5, 1.880_108_650_81]),
        (6.0, 5, 8, [0.190_479_953_17, 0.730_902_019_618, 0.979_515_712_856, 0.939_107_538_889, 2.783_603_009_17]),
        (4.0, 4, 6, [0.108_474_576_271, 0.650_847_457_627, 0.638_783_269_962, 0.473_749_718_774, 2.618_170_701_8]),
        (0.8, 1, 3, [0.121_846_739_648, 0.580_675_868_634, 1.224_932_249_32, 0.636_146_240_232, 6.539_956_688_62]),
    ];
    for (offered, servers, places, golden) in table {
        let pool = Pool { places: Some(places), ..pool(offered, &exponential()) };
        let row = row(&pool, servers);
        assert_eq!(row.model, PoolModel::LimitedQueue);
        let found = [
            row.refused_share.unwrap().value,
            row.wait_probability.unwrap().value,
            seconds(row.wait_mean_ns),
            seconds(row.wait_p50_ns),
            seconds(row.wait_p99_ns),
        ];
        for (found, golden) in found.into_iter().zip(golden) {
            near(found, golden);
        }
        near(row.in_use_mean.unwrap().value, offered * (1.0 - golden[0]));
    }
}

#[test]
fn waits_for_fixed_holds_are_golden() {
    for (load, p50, p99) in [
        (0.3, 0.0, 1.890_873_401_4),
        (0.5, 0.0, 3.336_255_957),
        (0.7, 0.729_750_891_094, 6.485_499_428_96),
        (0.8, 1.275_939_873_38, 10.355_886_792),
        (0.9, 3.013_047_519_31, 21.898_237_349_5),
        (0.95, 6.480_667_906_12, 44.937_765_508_4),
    ] {
        let row = row(&pool(load, &fixed()), 1);
        assert_eq!(row.model, PoolModel::Fixed);
        near(seconds(row.wait_p50_ns), p50);
        near(seconds(row.wait_p99_ns), p99);
        near(seconds(row.wait_mean_ns), load / (2.0 * (1.0 - load)));
        near(row.wait_probability.unwrap().value, load);
    }
    // In heavy traffic, waits are exponential.
    let row = row(&pool(0.999_99, &fixed()), 1);
    let p99 = 100f64.ln() * seconds(row.wait_mean_ns);
    assert!((seconds(row.wait_p99_ns) / p99 - 1.0).abs() < 1e-4);
}

#[test]
fn one_server_waits_as_the_textbook_says() {
    for load in [0.1, 0.5, 0.9, 0.999] {
        let row = row(&pool(load, &exponential()), 1);
        near(row.wait_probability.unwrap().value, load);
        assert!((seconds(row.wait_mean_ns) / (load / (1.0 - load)) - 1.0).abs() < 1e-9);
        let p99 = ((100.0 * load).ln() / (1.0 - load)).max(0.0);
        assert!((seconds(row.wait_p99_ns) / p99 - 1.0).abs() < 1e-9);
    }
}

#[test]
fn many_servers_keep_their_digits() {
    let many = f64::from(MAX_SERVERS);
    // To the second order, the loss of c servers with an offered load of c is
    // 1 / (√(πc/2) + 2/3) (Jagerman, *Some properties of the Erlang loss function*, Bell System
    // Technical Journal 53, 1974).
    let blocking = erlang::blocking(many, MAX_SERVERS).unwrap();
    let expected = 1.0 / ((std::f64::consts::FRAC_PI_2 * many).sqrt() + 2.0 / 3.0);
    assert!((blocking / expected - 1.0).abs() < 1e-6, "{blocking}");
    assert!(erlang::waiting(many, MAX_SERVERS).unwrap().is_none());
    let row = row(&pool(many - 3000.0, &exponential()), MAX_SERVERS);
    let waiting = row.wait_probability.unwrap().value;
    assert!(0.0 < waiting && waiting < 0.01, "{waiting}");
    // As many places to wait, nearly all of them taken.
    let full = Pool { places: Some(MAX_SERVERS), ..pool(20.0, &exponential()) };
    let p99 = seconds(self::row(&full, 10).wait_p99_ns);
    assert!((p99 / 1e5 - 1.0).abs() < 0.01, "{p99}");
    // Too rare for a double.
    let rare = erlang::waiting(1e-9, MAX_SERVERS).unwrap().unwrap();
    assert_eq!(rare, 0.0);
}

#[test]
fn more_servers_never_make_it_worse() {
    for places in [None, Some(1), Some(7), Some(3000)] {
        for offered in [1e-9, 0.2, 0.999_999_9, 1.0, 3.0, 59.9, 1e9] {
            let pool = Pool { places, ..pool(offered, &exponential()) };
            let mut rows = Rows::new(&pool, false, 1).unwrap();
            let mut before = [1.0, f64::INFINITY, f64::INFINITY];
            for servers in (1..80).chain([1000]) {
                let row = rows.row(servers).unwrap();
                let Some(mean) = row.wait_mean_ns else {
                    assert_eq!(row.model, PoolModel::Fluid);
                    continue;
                };
                let p99 = row.wait_p99_ns.unwrap().value;
                let now = [row.refused_share.unwrap().value, mean.value, p99];
                for (now, before) in now.into_iter().zip(before) {
                    assert!(0.0 <= now && now <= before * (1.0 + 1e-9) + 1e-12, "{row:?}");
                }
                before = now;
                let in_use = row.in_use_mean.unwrap().value;
                assert!(in_use <= offered * (1.0 + 1e-12), "{row:?}");
                assert!(in_use <= f64::from(servers) * (1.0 + 1e-9), "{row:?}");
                let waiting = row.wait_probability.unwrap().value;
                assert!((0.0..=1.0).contains(&waiting), "{row:?}");
            }
        }
    }
}

#[test]
fn a_queue_without_enough_servers_grows() {
    let pool = Pool::new(20.0, Shape::exponential(300e6).unwrap());
    let mut rows = Rows::new(&pool, true, 1).unwrap();
    for (servers, growth) in [(1, 20.0 - 1.0 / 0.3), (3, 10.0), (6, 0.0)] {
        let row = rows.row(servers).unwrap();
        assert_eq!(row.model, PoolModel::Fluid);
        assert!((row.growth_per_s.unwrap() - growth).abs() < 1e-9, "{row:?}");
        assert_eq!(row.in_use_mean.unwrap().value, f64::from(servers));
        assert_eq!(row.wait_p99_ns, None);
    }
    assert_eq!(rows.row(7).unwrap().growth_per_s, None);
    let patient = Pool { patience_ns: Some(1e9), ..pool };
    assert_eq!(row(&patient, 3).growth_per_s, None);
}

#[test]
fn the_fewest_servers_are_enough_and_one_less_is_not() {
    let burst = Shape::hyperexponential(1e9, 4.0).unwrap();
    for (hold, offered, places, patience_ns) in [
        (exponential(), 6.0, None, None),
        (exponential(), 0.01, None, None),
        (exponential(), 5000.0, None, None),
        (exponential(), 6.0, Some(0), None),
        (exponential(), 6.0, Some(3), None),
        (fixed(), 0.6, None, None),
        (fixed(), 2.0, None, None),
        (burst, 4.0, Some(10), Some(0.5e9)),
    ] {
        let pool = Pool { places, patience_ns, ..pool(offered, &hold) };
        let mut rows = Rows::new(&pool, false, 1).unwrap();
        let enough = rows.fewest_servers(0.2e9).unwrap().unwrap();
        assert!(!enough.fewer_may_do, "{pool:?}");
        let fewest = enough.servers;
        assert!(rows.row(fewest).unwrap().is_enough(0.2e9));
        assert!(fewest == 1 || !rows.row(fewest - 1).unwrap().is_enough(0.2e9), "{pool:?}");
    }
    let too_many = pool(2e6, &exponential());
    assert_eq!(Rows::new(&too_many, false, 1).unwrap().fewest_servers(1e9).unwrap(), None);
}

/// Of a hundred seeds, the interval must hold the exact 99% quantile, and the exact mean, for 95.
fn hundred_seeds(pool: &Pool, servers: u32, arrivals: u64) {
    let exact = row(pool, servers);
    assert!(exact.model != PoolModel::Simulation);
    let mut held = [0; 3];
    for seed in 1..=100 {
        let found = pool::simulate(pool, servers, arrivals, seed).unwrap();
        for (held, (found, exact)) in held.iter_mut().zip([
            (found.wait_p99_ns, exact.wait_p99_ns),
            (found.wait_mean_ns, exact.wait_mean_ns),
            (Some(found.wait_probability), exact.wait_probability),
        ]) {
            *held += u32::from(found.unwrap().holds(exact.unwrap().value));
        }
    }
    println!("{servers} servers hold p99, mean, probability of a wait: {held:?} of 100");
    assert!(held.into_iter().all(|held| held >= 95), "{servers} servers: {held:?} of 100");
}

#[test]
fn simulated_waits_of_many_servers_agree_with_erlang() {
    hundred_seeds(&pool(6.0, &exponential()), 8, 100_000);
}

#[test]
fn simulated_waits_of_one_server_agree_with_the_series() {
    hundred_seeds(&pool(0.7, &fixed()), 1, 100_000);
}

#[test]
fn simulated_waits_of_a_limited_queue_agree_with_the_sums() {
    hundred_seeds(&Pool { places: Some(8), ..pool(6.0, &exponential()) }, 5, 100_000);
}

#[test]
#[ignore = "a minute in a release build: cargo test --release -p threadtoll-model -- --ignored"]
fn simulated_waits_agree_in_full() {
    hundred_seeds(&pool(6.0, &exponential()), 8, 1_000_000);
    hundred_seeds(&pool(95.0, &exponential()), 100, 1_000_000);
    hundred_seeds(&pool(970.0, &exponential()), 1000, 1_000_000);
    hundred_seeds(&pool(0.9, &fixed()), 1, 1_000_000);
}

/// Cases whose exact figures are formulas of their own.
#[test]
fn other_simulated_figures_agree_with_their_formulas() {
    let measured = Shape::sampled(&[0.2e9, 0.2e9, 0.6e9, 3.0e9]).unwrap();
    // One server, any hold times: Pollaczek and Khinchine.
    let load = 0.6;
    let found = pool::simulate(&pool(load, &measured), 1, 500_000, 7).unwrap();
    let mean = load * (1.0 + measured.variation()) / (2.0 * (1.0 - load));
    assert!(found.wait_mean_ns.unwrap().holds(mean * 1e9), "{found:?} and {mean}");
    assert!(found.wait_probability.holds(load) && found.served_share.value == 1.0);
    // No place to wait: the loss does not depend on the distribution of hold times.
    let lossy = Pool { places: Some(0), ..pool(4.0, &measured) };
    let found = pool::simulate(&lossy, 6, 500_000, 7).unwrap();
    assert!(found.refused_share.holds(erlang::blocking(4.0, 6).unwrap()), "{found:?}");
    assert_eq!(found.wait_probability.value, 0.0);
    // One server, exponential hold times, and patience for D: the share of the callers who give up
    // is (1−ρ)ρE/(1−ρ²E) with E = exp(−(1−ρ)D/h) (D. Y. Barrer, *Queuing with impatient customers
    // and ordered service*, Operations Research 5, 1957).
    for load in [0.5, 0.9, 1.4] {
        let patient = Pool { patience_ns: Some(2e9), ..pool(load, &exponential()) };
        let found = pool::simulate(&patient, 1, 500_000, 7).unwrap();
        let far = (-(1.0 - load) * 2.0f64).exp();
        let gave_up = (1.0 - load) * load * far / (1.0 - load * load * far);
        assert!(found.gave_up_share.holds(gave_up), "{found:?} and {gave_up}");
        assert!(found.wait_p99_ns.unwrap().value <= 2e9);
        assert_eq!(found.refused_share.value, 0.0);
    }
}

#[test]
fn what_a_simulation_cannot_carry_is_withheld() {
    // So close to its limit, the queue hardly ever forgets its length.
    let close = row(&pool(9.999, &fixed()), 10);
    assert_eq!((close.model, close.wait_p99_ns), (PoolModel::Simulation, None));
    assert_eq!(close.in_use_mean.unwrap().value, 9.999);
    let crowd = pool(1e4, &fixed());
    let enough = Rows::new(&crowd, false, 1).unwrap().fewest_servers(1e9).unwrap().unwrap();
    assert!(enough.fewer_may_do && enough.servers > 10_001, "{enough:?}");
    // One caller in 100 000 is served.
    let crowded = Pool { places: Some(2), ..pool(1e5, &fixed()) };
    let found = pool::simulate(&crowded, 1, 100_000, 1).unwrap();
    assert_eq!(found.wait_p99_ns, None);
    assert!(found.refused_share.value > 0.99);
}

#[test]
fn what_is_no_pool_is_refused() {
    let good = pool(1.0, &exponential());
    let rows = |pool: &Pool| Rows::new(pool, false, 1).map(|_| ());
    for arrivals_per_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-12, 1e300] {
        assert!(rows(&Pool { arrivals_per_s, ..good.clone() }).is_err(), "{arrivals_per_s}");
    }
    assert!(rows(&Pool::new(1.0, Shape::fixed(0.0).unwrap())).is_err());
    assert!(rows(&Pool { places: Some(MAX_SERVERS + 1), ..good.clone() }).is_err());
    for patience_ns in [-1.0, f64::NAN, 1e19] {
        assert!(rows(&Pool { patience_ns: Some(patience_ns), ..good.clone() }).is_err());
    }
    let mut rows = Rows::new(&good, false, 1).unwrap();
    for servers in [0, MAX_SERVERS + 1, u32::MAX] {
        assert!(rows.row(servers).is_err());
        assert!(pool::simulate(&good, servers, 1000, 1).is_err());
        assert!(erlang::blocking(1.0, servers).is_err());
        assert!(erlang::waiting(1.0, servers).is_err());
    }
    for wait_ns in [0.0, -1.0, f64::NAN] {
        assert!(rows.fewest_servers(wait_ns).is_err());
    }
    assert!(pool::simulate(&good, 1, 999, 1).is_err());
    for offered in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(erlang::blocking(offered, 1).is_err() && erlang::waiting(offered, 1).is_err());
    }
}
