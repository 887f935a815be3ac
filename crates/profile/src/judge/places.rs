//! Finds the holder of a lock whose word names no owner, by the places at which threads stand.
//!
//! A place is a return address together with the position of its frame. Threads that loop have the
//! same return addresses on their stacks in and out of the lock, some of them left over from
//! earlier calls, so an address alone tells nothing. A thread that stands inside the lock, though,
//! is never seen while the word is free, and never together with a second one. So a place is
//! *inside* if the word is free much more rarely while a thread stands there than otherwise, and
//! threads do not stand there together. Who stands at such a place holds the lock.
//!
//! Looks at a place are a sequential test between the two (A. Wald, *Sequential tests of
//! statistical hypotheses*, Annals of Mathematical Statistics 16, 1945): a lock that is free a
//! fifth of the time takes 42 looks at a place inside, and three or four while it is free at one
//! outside.
//!
//! A thread that shows no stack, because it is on a CPU or waits for one, stands at a place of its
//! own: that of a thread which computes only while it holds the lock is inside. One that has just
//! been woken stands at another, for it is still where it slept.
//!
//! A thread at other places may hold the lock as well, at a place that threads pass in and out of
//! it. It is ruled out once places inside explain nearly all scenes in which every thread shows
//! its stack.
//!
//! A lock that is never free shows no difference. But then all its users are seen to wait for it
//! now and then, and the one that does not wait holds it. So does a thread on a CPU that is never
//! seen to wait, if there is no other: it takes the lock again before the others wake up.
//!
//! Where two threads remain possible, both are named as candidates.

use std::collections::{HashMap, HashSet};

use super::interval::{share, share_at};

/// Most places and threads remembered.
const MAX_PLACES: usize = 4096;

/// Fewest looks at a place that count as evidence.
const MIN_LOOKS: u64 = 20;

/// Quantile of the normal distribution beyond which lies one in two thousand.
const CERTAIN: f64 = 3.29;

/// Ratio of likelihoods at which a place is taken to be inside, or outside.
const LIKELIER: f64 = 2000.0;

/// The word is free so many times more rarely at a place inside than otherwise. Not infinitely:
/// threads are looked at some microseconds after the word.
const RARER: f64 = 10.0;

/// Frames of the places at which threads without a stack stand: on a CPU, and woken.
const ON_CPU: u64 = u64::MAX;
const WOKEN: u64 = u64::MAX - 1;

/// Share of looks at a place inside that may show two threads there, because one left and one came
/// while the threads were looked at.
const MAX_CROWDED: f64 = 0.1;

/// Share of recent scenes that may lack a thread inside while other threads are ruled out.
const MAX_UNEXPLAINED: f64 = 0.03;

/// Number of explained or unexplained scenes that count as recent.
const RECENT: u32 = 128;

/// One scene in this number is checked for an explanation, which costs as much as learning.
const EXPLAIN_EVERY: u64 = 4;

/// Share of looks that show the word free below which all users of the lock are seen to wait.
const RARELY_FREE: f64 = 0.1;

/// A return address on a thread's stack, and the position of its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The return address.
    pub return_address: u64,
    /// Position of the frame, measured so that threads in one call chain agree: its distance from
    /// the thread's outermost frame.
    pub frame: u64,
}

/// A thread that was looked at.
#[derive(Clone, Copy, Debug)]
pub struct Stand<'a> {
    /// Its number.
    pub thread: u32,
    /// It waits for the lock.
    pub waits: bool,
    /// Places on its stack; empty if it shows none, as a thread on a CPU does.
    pub places: &'a [Place],
    /// It has been woken, and has no CPU yet: it is still where it slept.
    pub woken: bool,
}

impl Stand<'_> {
    fn without_stack(&self) -> Place {
        let frame = if self.woken { WOKEN } else { ON_CPU };
        Place { return_address: self.thread.into(), frame }
    }
}

/// What one sample shows of a lock's word and of threads.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The lock is held. Leave scenes out whose word changed while threads were looked at.
    pub held: bool,
    /// Threads that were looked at.
    pub threads: &'a [Stand<'a>],
    /// No thread was left out.
    pub complete: bool,
}

/// The holder in a scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Nobody.
    Nobody,
    /// This thread.
    Thread(u32),
    /// One of these threads; empty if it was not looked at.
    OneOf(Vec<u32>),
}

/// Looks at a place.
#[derive(Clone, Copy, Debug, Default)]
struct Looks {
    /// Looks at threads there.
    all: u64,
    /// Looks while the word was free.
    free: u64,
    /// Looks with a second thread there.
    crowded: u64,
    /// Side of the lock, as of the last judgement.
    side: Side,
    /// Number of looks from which it is judged again.
    next: u64,
}

/// Places seen for one lock, and what they were seen with.
#[derive(Clone, Debug, Default)]
pub struct Places {
    looks: HashMap<Place, Looks>,
    users: HashSet<u32>,
    scenes: u64,
    free_scenes: u64,
    here: HashMap<Place, u32>,
    /// Recent scenes with a held lock and all stacks visible: those with a thread inside, and those
    /// without.
    explained: u32,
    unexplained: u32,
}

/// Side of the lock on which a thread or place is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Side {
    Inside,
    Outside,
    #[default]
    Open,
}

impl Looks {
    /// The side, where the word is free this share of time.
    fn judge(&self, usual: f64) -> Side {
        let Some(crowded) = share_at(self.crowded, self.all, CERTAIN) else { return Side::Open };
        if crowded.low > MAX_CROWDED {
            return Side::Outside;
        }
        // A lock that is hardly ever held must not make this infinite.
        let usual = usual.min(0.99);
        let held = (self.all - self.free) as f64;
        let inside = held * ((1.0 - usual / RARER) / (1.0 - usual)).ln();
        let outside = self.free as f64 * RARER.ln();
        match inside - outside {
            likelier if likelier > LIKELIER.ln() => Side::Inside,
            likelier if likelier < -LIKELIER.ln() => Side::Outside,
            _ => Side::Open,
        }
    }
}

impl Places {
    /// Learns from a scene.
    pub fn learn(&mut self, scene: Scene<'_>) {
        self.scenes += 1;
        self.free_scenes += u64::from(!scene.held);
        self.here.clear();
        for stand in scene.threads {
            if stand.waits {
                if self.users.len() < MAX_PLACES {
                    self.users.insert(stand.thread);
                }
                continue;
            }
            let no_stack = [stand.without_stack()];
            let places = if stand.places.is_empty() { &no_stack } else { stand.places };
            for (index, place) in places.iter().enumerate() {
                let again = places[..index].contains(place);
                if !again && self.here.len() < MAX_PLACES {
                    *self.here.entry(*place).or_default() += 1;
                }
            }
        }
        let usual = self.free_scenes as f64 / self.scenes as f64;
        for (&place, &threads) in &self.here {
            if self.looks.len() >= MAX_PLACES && !self.looks.contains_key(&place) {
                continue;
            }
            let looks = self.looks.entry(place).or_default();
            looks.all += u64::from(threads);
            looks.free += if scene.held { 0 } else { u64::from(threads) };
            looks.crowded += if threads > 1 { u64::from(threads) } else { 0 };
            if looks.all >= looks.next.max(MIN_LOOKS) {
                looks.side = looks.judge(usual);
                looks.next = looks.all + looks.all / 16 + 1;
            }
        }
        if self.scenes.is_multiple_of(EXPLAIN_EVERY) {
            self.explain(scene);
        }
    }

    fn explain(&mut self, scene: Scene<'_>) {
        if !scene.held || !scene.complete {
            return;
        }
        let others = scene.threads.iter().filter(|stand| !stand.waits);
        let sides: Vec<_> = others.map(|stand| (self.side(stand), stand)).collect();
        // A thread without a stack may be anywhere.
        let anywhere =
            |&(side, stand): &(Side, &Stand<'_>)| side == Side::Open && stand.places.is_empty();
        if sides.iter().any(|&(side, _)| side == Side::Inside) {
            self.explained += 1;
        } else if !sides.iter().any(anywhere) {
            self.unexplained += 1;
        }
        if self.explained + self.unexplained >= RECENT {
            self.explained /= 2;
            self.unexplained /= 2;
        }
    }

    /// Returns `true` if a thread at known places outside cannot hold the lock.
    fn rules_out(&self) -> bool {
        let most = f64::from(self.explained) * MAX_UNEXPLAINED;
        self.explained >= RECENT / 4 && f64::from(self.unexplained) <= most
    }

    /// The holder in a scene, by what has been learned so far.
    pub fn holder(&self, scene: Scene<'_>) -> Holder {
        if !scene.held {
            return Holder::Nobody;
        }
        let all_users_known = self.scenes >= MIN_LOOKS
            && share(self.free_scenes, self.scenes).is_some_and(|free| free.high < RARELY_FREE);
        let rules_out = self.rules_out();
        let (mut inside, mut open) = (Vec::new(), Vec::new());
        for stand in scene.threads {
            if stand.waits {
                continue;
            }
            let may_use =
                !all_users_known || stand.places.is_empty() || self.users.contains(&stand.thread);
            match self.side(stand) {
                Side::Inside => inside.push(stand.thread),
                Side::Outside if rules_out => {}
                Side::Open | Side::Outside if may_use => open.push(stand.thread),
                Side::Open | Side::Outside => {}
            }
        }
        match (inside.as_slice(), open.as_slice()) {
            (&[one], _) => Holder::Thread(one),
            (&[], &[one]) if scene.complete => Holder::Thread(one),
            (&[], _) => Holder::OneOf(open),
            _ => Holder::OneOf(inside),
        }
    }

    fn side(&self, stand: &Stand<'_>) -> Side {
        let side = |place| self.looks.get(place).map_or(Side::Open, |looks| looks.side);
        if stand.places.is_empty() {
            return side(&stand.without_stack());
        }
        let mut outside = true;
        for place in stand.places {
            match side(place) {
                Side::Inside => return Side::Inside,
                Side::Open => outside = false,
                Side::Outside => {}
            }
        }
        if outside { Side::Outside } else { Side::Open }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::super::simulated::{Program, Run, Times, at, rng};
    use super::*;

    const fn place(return_address: u64, frame: u64) -> Place {
        Place { return_address, frame }
    }

    const START: Place = place(0x100, 0x10);
    const MAIN: Place = place(0x110, 0x18);
    const NAP: Place = place(0x500, 0xc0);
    const IN: u64 = 0x201;
    const OUT: u64 = 0x202;
    const LOOP_FRAME: u64 = 0x80;
    const STALE_FRAME: u64 = 0x140;

    /// A thread of a loop that naps in and out of the lock: both return addresses are on its stack,
    /// one of them left over.
    fn stack(inside: bool) -> Vec<Place> {
        let (live, stale) = if inside { (IN, OUT) } else { (OUT, IN) };
        vec![NAP, place(stale, STALE_FRAME), place(live, LOOP_FRAME), START]
    }

    fn stand(thread: u32, waits: bool, places: &[Place]) -> Stand<'_> {
        Stand { thread, waits, places, woken: false }
    }

    #[derive(Clone, Copy, Default)]
    struct Look {
        /// Share of threads that compute, and show no stack.
        on_cpu: f64,
        /// Threads looked at; all if zero.
        threads: usize,
        /// Stacks show the same places in and out of the lock.
        alike: bool,
    }

    /// Calls `visit` with each scene of a run, and its true holder.
    fn scenes(run: &Run, look: Look, mut visit: impl FnMut(Scene<'_>, Option<u32>)) {
        let mut rng = rng(5);
        for time in run.instants(1000.0, 6) {
            let holder = at(&run.holds, time).map(|hold| hold.thread);
            let mut stacks: Vec<(u32, bool, Vec<Place>)> = (0..run.waits.len() as u32)
                .map(|id| {
                    let computes = rng.random::<f64>() < look.on_cpu;
                    let places = match (computes, look.alike) {
                        (true, _) => Vec::new(),
                        (false, true) => stack(false),
                        (false, false) => stack(holder == Some(id)),
                    };
                    (id, run.waiting(id, time), places)
                })
                .collect();
            // The main thread joins the others.
            stacks.push((1000, false, vec![place(0x900, 0x40), MAIN]));
            if look.threads > 0 {
                while stacks.len() > look.threads {
                    stacks.swap_remove(rng.random_range(0..stacks.len()));
                }
            }
            let threads: Vec<Stand<'_>> = stacks
                .iter()
                .map(|(thread, waits, places)| stand(*thread, *waits, places))
                .collect();
            let complete = look.threads == 0;
            visit(Scene { held: holder.is_some(), threads: &threads, complete }, holder);
        }
    }

    #[derive(Debug, Default)]
    struct Score {
        right: u32,
        wrong: u32,
        /// Not seen, with the holder among the candidates.
        candidate: u32,
        missed: u32,
    }

    fn score(program: Program, look: Look) -> Score {
        let run = program.run(10.0, 3);
        let mut places = Places::default();
        scenes(&run, look, |scene, _| places.learn(scene));
        let mut score = Score::default();
        scenes(&run, look, |scene, truth| {
            let looked_at = |id| scene.threads.iter().any(|stand| stand.thread == id);
            let Some(truth) = truth.filter(|&id| looked_at(id)) else { return };
            match places.holder(scene) {
                Holder::Thread(id) if id == truth => score.right += 1,
                Holder::OneOf(ids) if ids.contains(&truth) => score.candidate += 1,
                Holder::OneOf(_) => score.missed += 1,
                Holder::Thread(_) | Holder::Nobody => score.wrong += 1,
            }
        });
        score
    }

    const PLAIN: Program = Program {
        threads: 6,
        hold: 2e-3,
        think: 15e-3,
        hold_times: Times::Exponential,
        think_times: Times::Exponential,
        hand_off: 0.02e-3,
    };

    #[test]
    fn a_sleeping_holder_is_found_among_decoys() {
        for program in [PLAIN, Program { threads: 2, think: 4e-3, ..PLAIN }] {
            let score = score(program, Look::default());
            assert!(score.right > 1000);
            assert_eq!((score.wrong, score.candidate, score.missed), (0, 0, 0));
        }
    }

    #[test]
    fn random_subsets_of_threads_suffice() {
        let score = score(
            Program { threads: 12, think: 40e-3, ..PLAIN },
            Look { threads: 4, ..Look::default() },
        );
        assert!(score.right > 500 && score.wrong == 0, "{score:?}");
    }

    #[test]
    fn the_one_user_of_a_saturated_lock_that_does_not_wait_holds_it() {
        let program = Program { think: 0.2e-3, hand_off: 0.0, ..PLAIN };
        let score = score(program, Look { alike: true, ..Look::default() });
        assert!(score.right > 5 * score.candidate, "{score:?}");
        assert_eq!((score.wrong, score.missed), (0, 0), "{score:?}");
    }

    #[test]
    fn threads_that_cannot_be_told_apart_are_candidates() {
        let alike = Look { alike: true, ..Look::default() };
        let score = score(PLAIN, alike);
        assert_eq!((score.wrong, score.missed), (0, 0), "{score:?}");
        assert!(score.candidate > 20 * score.right, "{score:?}");
    }

    #[test]
    fn a_computing_holder_is_named_when_no_other_thread_is_possible() {
        let score = score(PLAIN, Look { on_cpu: 0.2, ..Look::default() });
        assert!(score.right > 1000 && score.wrong == 0, "{score:?}");
    }

    /// Scenes in which the holder computes, and other threads sleep when they do not wait.
    fn computing_scenes(run: &Run, mut visit: impl FnMut(Scene<'_>, Option<u32>)) {
        let (outside, main) = (stack(false), [place(0x900, 0x40), MAIN]);
        for time in run.instants(30.0, 6) {
            let holder = at(&run.holds, time).map(|hold| hold.thread);
            let mut threads: Vec<Stand<'_>> = (0..run.waits.len() as u32)
                .map(|id| match holder == Some(id) {
                    true => stand(id, false, &[]),
                    false => stand(id, run.waiting(id, time), &outside),
                })
                .collect();
            threads.push(stand(1000, false, &main));
            visit(Scene { held: holder.is_some(), threads: &threads, complete: true }, holder);
        }
    }

    #[test]
    fn a_thread_that_computes_only_inside_is_known_by_that() {
        let run = Program { threads: 4, think: 8e-3, ..PLAIN }.run(10.0, 3);
        let mut places = Places::default();
        computing_scenes(&run, |scene, _| places.learn(scene));
        let (mut right, mut wrong) = (0, 0);
        computing_scenes(&run, |scene, truth| match places.holder(scene) {
            Holder::Thread(id) if Some(id) == truth => right += 1,
            Holder::Thread(_) => wrong += 1,
            Holder::Nobody | Holder::OneOf(_) => {}
        });
        assert!(right > 100 && wrong == 0, "{right} right, {wrong} wrong");
    }

    #[test]
    fn a_thread_that_always_computes_is_not_inside() {
        let run = Program { threads: 4, think: 8e-3, ..PLAIN }.run(10.0, 3);
        let mut places = Places::default();
        let spinner = stand(7, false, &[]);
        computing_scenes(&run, |scene, _| {
            let threads: Vec<_> = scene.threads.iter().copied().chain([spinner]).collect();
            places.learn(Scene { threads: &threads, ..scene });
        });
        assert_eq!(places.side(&spinner), Side::Outside);
        assert_eq!(places.side(&Stand { woken: true, ..spinner }), Side::Open);
    }

    #[test]
    fn a_thread_that_never_waits_may_hold_a_lock_that_is_never_free() {
        let mut places = Places::default();
        let (outside, main) = (stack(false), [place(0x900, 0x40), MAIN]);
        let scene = |waiting: u32| {
            let mut threads = vec![stand(0, false, &[]), stand(1000, false, &main)];
            threads.extend((1..4).map(|id| stand(id, id != waiting, &outside)));
            threads
        };
        for look in 0..100 {
            let threads = scene(look % 8);
            places.learn(Scene { held: true, threads: &threads, complete: true });
        }
        let all_wait = scene(0);
        let holder = places.holder(Scene { held: true, threads: &all_wait, complete: true });
        assert_eq!(holder, Holder::Thread(0));
        let one_thinks = scene(2);
        let holder = places.holder(Scene { held: true, threads: &one_thinks, complete: true });
        assert_eq!(holder, Holder::OneOf(vec![0, 2]));
    }

    #[test]
    fn hostile_stacks_are_bounded() {
        let mut places = Places::default();
        let many: Vec<Place> = (0..100_000).map(|address| place(address, 0)).collect();
        // A stack this long is cut by whoever reads it; the places are bounded nevertheless.
        for part in many.chunks(100) {
            let threads = [stand(part[0].return_address as u32, false, part)];
            let scene = Scene { held: true, threads: &threads, complete: true };
            places.learn(scene);
            places.holder(scene);
        }
        assert!(places.looks.len() <= MAX_PLACES);
    }
}
