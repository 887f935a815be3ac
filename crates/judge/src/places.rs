//! Finds the holder of a lock whose word names no owner, from the places where threads are in the
//! code.
//!
//! Some threads are ruled out without places. A thread that has not run since the word was last
//! free cannot hold the lock. If the holder is known to be one of certain threads, no other thread
//! can hold the lock until one of these has run.
//!
//! # Places inside the lock
//!
//! A place is a return address together with the position of its frame. The address alone shows
//! nothing: threads that loop have the same addresses on their stacks inside and outside the lock,
//! some of them left over from earlier calls. But a thread inside the lock is never seen while the
//! word is free, and never together with a second such thread. So a place is *inside* under two
//! conditions: threads there are known not to hold the lock in a much smaller share of samples than
//! threads elsewhere, and no two threads are there at once. A thread at such a place holds the
//! lock.
//!
//! Samples of a place form a sequential test between inside and outside (A. Wald, *Sequential tests
//! of statistical hypotheses*, Annals of Mathematical Statistics 16, 1945). For a lock that is free
//! a fifth of the time, the test takes 42 samples to accept a place as inside, and three or four
//! samples with a free lock to accept it as outside.
//!
//! If all threads but one wait for a held lock, or have not run since it was free, the remaining
//! thread is the holder. Four such samples show that its whole stack is inside. They show nothing
//! about single frames, because those of a main loop are on the stack inside and outside the lock.
//!
//! All samples of a thread that does not run in between count as one: while a control group is out
//! of quota for a tenth of a second, a hundred samples show the same instant.
//!
//! A thread on a CPU, or waiting for one, shows no stack. Such threads have a special place: if a
//! thread computes only while it holds the lock, this place is inside. Threads that have just been
//! woken have another special place, because they are still where they slept.
//!
//! # Other places
//!
//! A thread at any other place may also hold the lock, because the place may be sometimes inside
//! and sometimes outside. Such threads are ruled out step by step:
//!
//! - stacks at which a thread is hardly ever the only possible holder: if threads held the lock
//!   there, they would be the only possible holder about as often as holders elsewhere;
//! - whole stacks that are outside, unless no other thread can hold the lock;
//! - all other stacks, once the places inside explain nearly all scenes in which every thread shows
//!   its stack: a holder at none of these places then shows no stack.
//!
//! If a lock is never free, places do not differ. But each of its users is then seen waiting at
//! times, so the user that does not wait is the holder. A thread on a CPU that is never seen
//! waiting is the holder, too, if it is the only such thread: it takes the lock again before the
//! others wake up.
//!
//! If two threads remain possible, both are candidates.

mod place_samples;
mod scene;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use threadtoll_stats::interval::share;

use place_samples::{PlaceSamples, Side};
pub use scene::{Place, Scene, ThreadInScene};

const MAX_PLACES: usize = 4096;

/// Minimum number of samples after which all users of a lock count as known.
const MIN_SAMPLES: u64 = 20;

/// Holders at one stack may be the only possible holder this many times more rarely than holders
/// elsewhere: during a short hold, fewer threads begin to wait than during a long one.
const LESS_ALONE: f64 = 4.0;

/// Holders with a stack count as inside if, among the scenes in which every thread shows its stack,
/// fewer than this share have no thread inside. The rule names wrong holders about this often.
const MAX_UNEXPLAINED: f64 = 0.1;

/// If the word is free in fewer than this share of samples, each user of the lock is seen waiting
/// sooner or later.
const RARELY_FREE: f64 = 0.1;

/// The holder of the lock in a scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SceneHolder {
    /// The lock is free.
    Nobody,
    /// The thread with this number.
    Thread(u32),
    /// One of these threads; empty if the holder was not examined.
    OneOf(Vec<u32>),
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    still_since: u64,
    whole: Place,
    outside: bool,
}

/// Evidence that one sample gives about a thread that does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Nobody holds the lock.
    Free,
    /// Another thread holds the lock.
    Bystander,
    /// The thread may hold the lock.
    Able,
}

/// Change since the last counted sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// The thread has run.
    Moved,
    /// The thread has not run, and is now known not to hold the lock.
    Outside,
    Nothing,
}

/// Places of threads, as learned from the samples of one lock.
#[derive(Clone, Debug, Default)]
pub struct Places {
    samples: HashMap<Place, PlaceSamples>,
    counted: HashMap<u32, Counted>,
    /// Number of counted samples of threads; in `free` of them, the word was free.
    all: u64,
    free: u64,
    /// Number of scenes in which all possible holders are known; in `with_sole` of them, there is
    /// only one.
    with_able: u64,
    with_sole: u64,
    users: HashSet<u32>,
    scenes: u64,
    free_scenes: u64,
    here: HashMap<Place, u32>,
}

/// Scenes with a held lock in which every thread that may hold the lock shows its stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explained {
    all: u64,
    /// Number of scenes in which no thread is inside.
    without: u64,
}

impl Explained {
    /// Returns `true` if holders that show their stacks can be assumed to be at places inside.
    fn holders_with_stacks(self) -> bool {
        share(self.without, self.all).is_some_and(|without| without.high < MAX_UNEXPLAINED)
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
            if let Some(samples) = self.samples.get_mut(&whole).filter(|_| !again) {
                samples.scenes += 1;
                samples.sole += u64::from(alone);
                samples.side = samples.judge(whole, usual);
            }
        }
    }

    fn usual(&self) -> f64 {
        self.free as f64 / self.all.max(1) as f64
    }

    fn learn_of(&mut self, stand: &ThreadInScene<'_>, status: Status) -> News {
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
            if self.samples.len() >= MAX_PLACES && !self.samples.contains_key(&place) {
                return;
            }
            let samples = self.samples.entry(place).or_default();
            samples.all += more;
            samples.outside += more_outside;
            let alone = self.here.get(&place).is_none_or(|&threads| threads <= 1);
            samples.crowded += if alone { 0 } else { more };
            if samples.all >= samples.next || more == 0 {
                samples.side = samples.judge(place, usual);
                samples.next = samples.all + samples.all / 16 + 1;
            }
        });
        news
    }

    fn news(&mut self, stand: &ThreadInScene<'_>, outside: bool) -> News {
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

    /// Counts a scene if the lock is held and every thread that may hold it shows its stack.
    pub fn explain(&self, scene: Scene<'_>, explained: &mut Explained) {
        let mut able = scene.threads.iter().filter(|stand| stand.may_hold());
        let all_show = able.clone().all(|stand| !stand.may_be_anywhere());
        if scene.held && scene.complete && all_show {
            explained.all += 1;
            let explains = able.any(|stand| self.side(stand) == Side::Inside);
            explained.without += u64::from(!explains);
        }
    }

    /// The holder in a scene, according to the scenes learned and explained so far.
    pub fn holder(&self, scene: Scene<'_>, explained: Explained) -> SceneHolder {
        if !scene.held {
            return SceneHolder::Nobody;
        }
        let all_users_known = self.scenes >= MIN_SAMPLES
            && share(self.free_scenes, self.scenes).is_some_and(|free| free.high < RARELY_FREE);
        let mut able: Vec<&ThreadInScene<'_>> =
            scene.threads.iter().filter(|stand| stand.may_hold()).collect();
        let inside = able.iter().filter(|stand| self.side(stand) == Side::Inside);
        let inside: Vec<u32> = inside.map(|stand| stand.thread).collect();
        match *inside.as_slice() {
            [] => {}
            [one] => return SceneHolder::Thread(one),
            _ => return SceneHolder::OneOf(inside),
        }
        if all_users_known {
            able.retain(|stand| stand.may_be_anywhere() || self.users.contains(&stand.thread));
        }
        let rule_out = |able: &mut Vec<&ThreadInScene<'_>>,
                        is_out: &dyn Fn(&ThreadInScene<'_>) -> bool| {
            if able.iter().any(|stand| !is_out(stand)) {
                able.retain(|stand| !is_out(stand));
            }
        };
        rule_out(&mut able, &|stand| self.is_never_alone(stand));
        rule_out(&mut able, &|stand| !stand.may_be_anywhere() && self.is_outside(stand));
        if explained.holders_with_stacks() {
            rule_out(&mut able, &|stand| !stand.may_be_anywhere());
        }
        match able.as_slice() {
            [one] if scene.complete => SceneHolder::Thread(one.thread),
            _ => SceneHolder::OneOf(able.iter().map(|stand| stand.thread).collect()),
        }
    }

    /// Returns `true` if threads at this stack are the only possible holder much more rarely than
    /// holders usually are.
    fn is_never_alone(&self, stand: &ThreadInScene<'_>) -> bool {
        let samples = self.samples_where(stand);
        let here = samples.and_then(|samples| share(samples.sole, samples.scenes));
        let usual = share(self.with_sole, self.with_able);
        here.zip(usual).is_some_and(|(here, usual)| here.high < usual.low / LESS_ALONE)
    }

    /// Returns `true` if the whole stack is outside. Single frames do not count, because they may
    /// be those of a loop.
    fn is_outside(&self, stand: &ThreadInScene<'_>) -> bool {
        self.samples_where(stand).is_some_and(|samples| samples.side == Side::Outside)
    }

    fn samples_where(&self, stand: &ThreadInScene<'_>) -> Option<&PlaceSamples> {
        self.samples.get(&stand.whole()?).filter(|_| !stand.granted)
    }

    fn side(&self, stand: &ThreadInScene<'_>) -> Side {
        let side =
            |place: &Place| self.samples.get(place).map_or(Side::Open, |samples| samples.side);
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
