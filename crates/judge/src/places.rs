//! Finds the holder of a lock whose word names no owner, by the places at which threads stand.
//!
//! A thread that has not run since the word was free does not hold the lock, whatever it does; nor
//! does any other while those have not run of whom one held it. Of the rest places tell.
//!
//! A place is a return address together with the position of its frame. Threads that loop have the
//! same return addresses on their stacks in and out of the lock, some of them left over from
//! earlier calls, so an address alone tells nothing. A thread that stands inside the lock, though,
//! is never seen while the word is free, and never together with a second one. So a place is
//! *inside* if threads that stand there are known not to hold the lock much more rarely than
//! elsewhere, and do not stand there together. Who stands at such a place holds the lock.
//!
//! Looks at a place are a sequential test between the two (A. Wald, *Sequential tests of
//! statistical hypotheses*, Annals of Mathematical Statistics 16, 1945): a lock that is free a
//! fifth of the time takes 42 looks at a place inside, and three or four while it is free at one
//! outside. Where all threads but one wait for a lock that is held, or have not run since it was
//! free, that one holds it: four such looks at a whole stack show that it is inside. Of single
//! frames they show nothing, for those of a main loop are there in and out of the lock. All looks
//! at a thread that does not run meanwhile are one: when a control group is out of quota nothing
//! moves for a tenth of a second, and a hundred looks show one chance instant.
//!
//! A thread that shows no stack, because it is on a CPU or waits for one, stands at a place of its
//! own: that of a thread which computes only while it holds the lock is inside. Those that have
//! just been woken stand at another, for they are still where they slept.
//!
//! A thread at other places may hold the lock as well, at a place that threads pass in and out of
//! it. But if holders stand there, then they are the only thread that can hold the lock as often
//! there as elsewhere: stacks of which no thread is ever alone are ruled out. Others are so once
//! places inside explain nearly all scenes in which every thread shows its stack: a holder that
//! stands at none of them shows no stack.
//!
//! A lock that is never free shows no difference. But then all its users are seen to wait for it
//! now and then, and the one that does not wait holds it. So does a thread on a CPU that is never
//! seen to wait, if there is no other: it takes the lock again before the others wake up.
//!
//! Where two threads remain possible, both are named as candidates.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use super::interval::{share, share_at};

/// Most places and threads remembered.
const MAX_PLACES: usize = 4096;

/// Fewest looks from which all users of a lock are known.
const MIN_LOOKS: u64 = 20;

/// Quantile of the normal distribution beyond which lies one in two thousand.
const CERTAIN: f64 = 3.29;

/// Ratio of likelihoods at which a place is taken to be inside, or outside.
const LIKELIER: f64 = 2000.0;

/// The word is free so many times more rarely at a place inside than otherwise. Not infinitely:
/// threads are looked at some microseconds after the word.
const RARER: f64 = 10.0;

/// A place at which threads do not hold the lock at an eighth of the looks, such as that of a loop
/// that they pass in and out of the lock, shall be outside even if the word is free more often than
/// at this share of looks.
const MAX_USUAL: f64 = 0.3;

/// Frames of the places at which threads without a stack stand: on a CPU, and woken.
const ON_CPU: u64 = u64::MAX;
const WOKEN: u64 = u64::MAX - 1;

/// Holders may be alone this many times more rarely at one stack than at the others: fewer threads
/// have begun to wait by the end of a short hold than of a long one.
const LESS_ALONE: f64 = 4.0;

/// Frame of the places that whole stacks are.
const WHOLE: u64 = u64::MAX - 2;

/// Share of looks at a place inside that may show two threads there, because one left and one came
/// while the threads were looked at.
const MAX_CROWDED: f64 = 0.1;

/// Share of the scenes in which every thread shows its stack that may lack a thread inside if
/// holders with a stack stand inside: the holders that are named instead are as often wrong.
const MAX_UNEXPLAINED: f64 = 0.1;

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
    /// It has been woken from that wait, and the lock may have been handed to it.
    pub granted: bool,
    /// Places on its stack; empty if it shows none, as a thread on a CPU does.
    pub places: &'a [Place],
    /// It sleeps: without places it is not known where.
    pub asleep: bool,
    /// It has been woken, and has no CPU yet: it is still where it slept.
    pub woken: bool,
    /// It does not hold the lock: it has not run since the word was free, or none of those has of
    /// whom one held it.
    pub bystander: bool,
    /// Time since which it has not run; `None` if it does, or that is not known.
    pub still_since: Option<u64>,
}

impl Stand<'_> {
    fn without_stack(&self) -> Place {
        match self.woken {
            true => Place { return_address: 0, frame: WOKEN },
            false => Place { return_address: self.thread.into(), frame: ON_CPU },
        }
    }

    /// The place that its whole stack is; `None` if it is not known.
    fn whole(&self) -> Option<Place> {
        if self.places.is_empty() {
            return (!self.asleep).then(|| self.without_stack());
        }
        let mut hasher = DefaultHasher::new();
        self.places.hash(&mut hasher);
        Some(Place { return_address: hasher.finish(), frame: WHOLE })
    }

    /// Calls `visit` with each of its places once.
    fn visit_places(&self, mut visit: impl FnMut(Place)) {
        self.whole().into_iter().for_each(&mut visit);
        for (index, &place) in self.places.iter().enumerate() {
            if !self.places[..index].contains(&place) {
                visit(place);
            }
        }
    }

    /// It shows no stack, or has left the place that it shows with the lock.
    fn may_be_anywhere(&self) -> bool {
        self.places.is_empty() || self.granted
    }

    /// It may hold a lock that is held, for all that is known without its place.
    fn may_hold(&self) -> bool {
        !self.waits && !self.bystander || self.granted
    }
}

/// What one sample shows of a lock's word and of threads.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The lock is held. Leave scenes out whose word changed while threads were looked at.
    pub held: bool,
    /// Threads that were looked at.
    pub threads: &'a [Stand<'a>],
    /// No thread was left out that may hold it.
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
    /// Looks at threads that did not hold the lock: the word was free, or had been since they ran.
    outside: u64,
    /// Scenes with a thread there of whom one may hold the lock.
    scenes: u64,
    /// Those of them in which no other can: it does.
    sole: u64,
    /// Looks with a second thread there.
    crowded: u64,
    /// Side of the lock, as of the last judgement.
    side: Side,
    /// Number of looks from which it is judged again.
    next: u64,
}

/// The last look at a thread that counts.
#[derive(Clone, Copy, Debug)]
struct Counted {
    still_since: u64,
    whole: Place,
    outside: bool,
}

/// Knowledge of a thread that does not wait, at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Nobody holds the lock.
    Free,
    /// Another thread holds it.
    Bystander,
    /// It may hold the lock.
    Able,
}

/// News of a thread that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// It has run since the last look that counts.
    Moved,
    /// It has not, and is known by now not to hold the lock.
    Outside,
    Nothing,
}

/// Places seen for one lock, and what they were seen with.
#[derive(Clone, Debug, Default)]
pub struct Places {
    looks: HashMap<Place, Looks>,
    counted: HashMap<u32, Counted>,
    /// Looks at threads that count, and those of them at which the word was free.
    all: u64,
    free: u64,
    /// Scenes in which it is known who may hold the lock, and those of them with a single thread.
    with_able: u64,
    with_sole: u64,
    users: HashSet<u32>,
    scenes: u64,
    free_scenes: u64,
    here: HashMap<Place, u32>,
}

/// Scenes with a held lock in which every thread that may hold it shows its stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explained {
    all: u64,
    /// Those in which no thread is inside.
    without: u64,
}

impl Explained {
    /// A holder that shows its stack stands inside.
    fn holders_with_stacks(self) -> bool {
        share(self.without, self.all).is_some_and(|without| without.high < MAX_UNEXPLAINED)
    }
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
    /// The side, where the word is free at this share of all looks.
    fn judge(&self, place: Place, usual: f64) -> Side {
        let Some(crowded) = share_at(self.crowded, self.all, CERTAIN) else { return Side::Open };
        if crowded.low > MAX_CROWDED {
            return Side::Outside;
        }
        let usual = usual.min(MAX_USUAL);
        let held = (self.all - self.outside) as f64;
        // A frame of a loop, or a thread on a CPU, may be alone as often in and out of the lock,
        // and yet be hardly ever known to be outside.
        let alone = if place.frame == WHOLE { self.sole as f64 * RARER.ln() } else { 0.0 };
        let inside = alone + held * ((1.0 - usual / RARER) / (1.0 - usual)).ln();
        let outside = self.outside as f64 * RARER.ln();
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
            let here = &mut self.here;
            stand.visit_places(|place| {
                if here.len() < MAX_PLACES {
                    *here.entry(place).or_default() += 1;
                }
            });
        }
        let mut fresh = false;
        for stand in scene.threads.iter().filter(|stand| !stand.waits) {
            let status = match () {
                () if !scene.held => Status::Free,
                () if stand.bystander => Status::Bystander,
                () => Status::Able,
            };
            fresh |= self.learn_of(stand, status) == News::Moved && status == Status::Able;
        }
        if fresh && scene.complete {
            self.learn_who_is_alone(scene);
        }
    }

    fn learn_who_is_alone(&mut self, scene: Scene<'_>) {
        let able = || scene.threads.iter().filter(|stand| stand.may_hold());
        let alone = able().count() == 1;
        self.with_able += 1;
        self.with_sole += u64::from(alone);
        let usual = self.usual();
        for (index, stand) in able().enumerate().filter(|(_, stand)| !stand.granted) {
            let Some(whole) = stand.whole() else { continue };
            let again =
                able().take(index).any(|other| !other.granted && other.whole() == Some(whole));
            if let Some(looks) = self.looks.get_mut(&whole).filter(|_| !again) {
                looks.scenes += 1;
                looks.sole += u64::from(alone);
                looks.side = looks.judge(whole, usual);
            }
        }
    }

    fn usual(&self) -> f64 {
        self.free as f64 / self.all.max(1) as f64
    }

    fn learn_of(&mut self, stand: &Stand<'_>, status: Status) -> News {
        let outside = matches!(status, Status::Free | Status::Bystander);
        let news = self.news(stand, outside);
        let (more, more_outside) = match news {
            News::Moved => (1, u64::from(outside)),
            News::Outside => (0, 1),
            News::Nothing => return news,
        };
        self.all += more;
        self.free += if status == Status::Free { more_outside } else { 0 };
        let usual = self.usual();
        stand.visit_places(|place| {
            if self.looks.len() >= MAX_PLACES && !self.looks.contains_key(&place) {
                return;
            }
            let looks = self.looks.entry(place).or_default();
            looks.all += more;
            looks.outside += more_outside;
            let alone = self.here.get(&place).is_none_or(|&threads| threads <= 1);
            looks.crowded += if alone { 0 } else { more };
            if looks.all >= looks.next || more == 0 {
                looks.side = looks.judge(place, usual);
                looks.next = looks.all + looks.all / 16 + 1;
            }
        });
        news
    }

    fn news(&mut self, stand: &Stand<'_>, outside: bool) -> News {
        let Some(whole) = stand.whole() else { return News::Nothing };
        let Some(still_since) = stand.still_since else { return News::Moved };
        if self.counted.len() >= MAX_PLACES && !self.counted.contains_key(&stand.thread) {
            self.counted.clear();
        }
        let now = Counted { still_since, whole, outside };
        let before = self.counted.insert(stand.thread, now);
        match before {
            Some(before) if (before.still_since, before.whole) == (still_since, whole) => {
                if let Some(counted) = self.counted.get_mut(&stand.thread) {
                    counted.outside |= before.outside;
                }
                if outside && !before.outside { News::Outside } else { News::Nothing }
            }
            _ => News::Moved,
        }
    }

    /// Counts a scene if it tells, by all that has been learned, where holders stand.
    pub fn explain(&self, scene: Scene<'_>, explained: &mut Explained) {
        let mut able = scene.threads.iter().filter(|stand| stand.may_hold());
        let all_show = able.clone().all(|stand| !stand.may_be_anywhere());
        if scene.held && scene.complete && all_show {
            explained.all += 1;
            let explains = able.any(|stand| self.side(stand) == Side::Inside);
            explained.without += u64::from(!explains);
        }
    }

    /// The holder in a scene, by what has been learned so far and what that explains.
    pub fn holder(&self, scene: Scene<'_>, explained: Explained) -> Holder {
        if !scene.held {
            return Holder::Nobody;
        }
        let all_users_known = self.scenes >= MIN_LOOKS
            && share(self.free_scenes, self.scenes).is_some_and(|free| free.high < RARELY_FREE);
        let mut able: Vec<&Stand<'_>> =
            scene.threads.iter().filter(|stand| stand.may_hold()).collect();
        let inside = able.iter().filter(|stand| self.side(stand) == Side::Inside);
        let inside: Vec<u32> = inside.map(|stand| stand.thread).collect();
        match *inside.as_slice() {
            [] => {}
            [one] => return Holder::Thread(one),
            _ => return Holder::OneOf(inside),
        }
        if all_users_known {
            able.retain(|stand| stand.may_be_anywhere() || self.users.contains(&stand.thread));
        }
        let rule_out = |able: &mut Vec<&Stand<'_>>, is_out: &dyn Fn(&Stand<'_>) -> bool| {
            if able.iter().any(|stand| !is_out(stand)) {
                able.retain(|stand| !is_out(stand));
            }
        };
        rule_out(&mut able, &|stand| self.is_never_alone(stand));
        if explained.holders_with_stacks() {
            rule_out(&mut able, &|stand| !stand.may_be_anywhere());
        }
        match able.as_slice() {
            [one] if scene.complete => Holder::Thread(one.thread),
            _ => Holder::OneOf(able.iter().map(|stand| stand.thread).collect()),
        }
    }

    /// Threads there are the only one that can hold the lock much more rarely than holders are.
    fn is_never_alone(&self, stand: &Stand<'_>) -> bool {
        let looks = self.looks_where(stand);
        let here = looks.and_then(|looks| share(looks.sole, looks.scenes));
        let usual = share(self.with_sole, self.with_able);
        here.zip(usual).is_some_and(|(here, usual)| here.high < usual.low / LESS_ALONE)
    }

    fn looks_where(&self, stand: &Stand<'_>) -> Option<&Looks> {
        self.looks.get(&stand.whole()?).filter(|_| !stand.granted)
    }

    fn side(&self, stand: &Stand<'_>) -> Side {
        let side = |place: &Place| self.looks.get(place).map_or(Side::Open, |looks| looks.side);
        if stand.granted {
            return Side::Open;
        }
        let whole = stand.whole().map_or(Side::Open, |whole| side(&whole));
        if whole != Side::Open || stand.places.is_empty() {
            return whole;
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

    use super::*;
    use crate::simulated::{Program, Run, Times, at, rng};

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
        let (granted, asleep, woken, bystander) = (false, false, false, false);
        Stand { thread, waits, granted, places, asleep, woken, bystander, still_since: None }
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
        let mut explained = Explained::default();
        scenes(&run, look, |scene, _| places.explain(scene, &mut explained));
        let mut score = Score::default();
        scenes(&run, look, |scene, truth| {
            let looked_at = |id| scene.threads.iter().any(|stand| stand.thread == id);
            let Some(truth) = truth.filter(|&id| looked_at(id)) else { return };
            match places.holder(scene, explained) {
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
        computing_scenes(&run, |scene, truth| match places.holder(scene, Explained::default()) {
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
    fn who_has_not_run_since_the_word_was_free_is_no_holder() {
        let mut places = Places::default();
        let (outside, main) = (stack(false), [place(0x900, 0x40), MAIN]);
        let threads = [
            stand(1, false, &outside),
            Stand { bystander: true, ..stand(2, false, &outside) },
            Stand { bystander: true, ..stand(1000, false, &main) },
        ];
        let scene = Scene { held: true, threads: &threads, complete: true };
        assert_eq!(places.holder(scene, Explained::default()), Holder::Thread(1));
        let all = threads.map(|stand| Stand { bystander: false, ..stand });
        let holder = places.holder(Scene { threads: &all, ..scene }, Explained::default());
        assert_eq!(holder, Holder::OneOf(vec![1, 2, 1000]));
        // That tells of its place, too.
        for _ in 0..100 {
            places.learn(scene);
        }
        assert_eq!(places.side(&threads[2]), Side::Outside);
    }

    #[test]
    fn a_thread_at_a_stack_that_is_never_alone_is_no_holder() {
        let (outside, inside) = (stack(false), stack(true));
        let mut places = Places::default();
        let thinker = stand(1, false, &outside);
        let waiter = Stand { waits: true, ..thinker };
        // The holder is on a CPU in the lock and out of it, and sleeps now and then.
        let holders = [stand(2, false, &[]), stand(3, false, &[]), stand(3, false, &inside)];
        for look in 0..400 {
            let other = if look % 2 == 0 { thinker } else { waiter };
            let threads = [other, holders[look % 3]];
            places.learn(Scene { held: look % 40 > 0, threads: &threads, complete: true });
        }
        let holder = |threads: &[Stand<'_>]| {
            let scene = Scene { held: true, threads, complete: true };
            places.holder(scene, Explained::default())
        };
        assert_eq!(holder(&[thinker, holders[0]]), Holder::Thread(2));
        assert_eq!(holder(&[holders[0], holders[1]]), Holder::OneOf(vec![2, 3]));
        assert_eq!(places.side(&holders[2]), Side::Inside);
        assert_eq!(places.side(&Stand { thread: 9, ..holders[2] }), Side::Inside);
    }

    #[test]
    fn a_moment_that_lasts_is_one_look() {
        let mut places = Places::default();
        let still = |thread, since| Stand { still_since: Some(since), ..stand(thread, false, &[]) };
        // Thread 2 sleeps through both holds and gaps.
        for since in 100..140 {
            let threads = [still(2, since)];
            places.learn(Scene { held: true, threads: &threads, complete: true });
            places.learn(Scene { held: false, threads: &threads, complete: true });
            places.learn(Scene { held: true, threads: &threads, complete: true });
        }
        // Thread 1 computes inside, and is out of quota there or, now and then, before it has the
        // lock.
        let frozen = |places: &mut Places, held, since| {
            let threads = [still(1, since)];
            let scene = Scene { held, threads: &threads, complete: true };
            (0..100).for_each(|_| places.learn(scene));
        };
        frozen(&mut places, false, 1);
        assert_eq!(places.side(&still(1, 1)), Side::Open);
        for since in 2..100 {
            frozen(&mut places, true, since);
        }
        assert_eq!(places.looks[&still(2, 0).without_stack()].outside, 40);
        assert_eq!(places.side(&still(1, 1)), Side::Inside);
        assert_eq!(places.side(&still(2, 1)), Side::Outside);
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
        let holder = places
            .holder(Scene { held: true, threads: &all_wait, complete: true }, Explained::default());
        assert_eq!(holder, Holder::Thread(0));
        let one_thinks = scene(2);
        let holder = places.holder(
            Scene { held: true, threads: &one_thinks, complete: true },
            Explained::default(),
        );
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
            places.holder(scene, Explained::default());
        }
        assert!(places.looks.len() <= MAX_PLACES);
    }
}
