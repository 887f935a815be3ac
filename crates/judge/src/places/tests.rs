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

/// Stack of a thread that sleeps inside and outside the lock, in a loop. Both return addresses are
/// on the stack, one of them left over.
fn stack(inside: bool) -> Vec<Place> {
    let (live, stale) = if inside { (IN, OUT) } else { (OUT, IN) };
    vec![NAP, place(stale, STALE_FRAME), place(live, LOOP_FRAME), START]
}

fn stand(thread: u32, waits: bool, places: &[Place]) -> ThreadInScene<'_> {
    let (granted, asleep, woken, bystander) = (false, false, false, false);
    ThreadInScene { thread, waits, granted, places, asleep, woken, bystander, still_since: None }
}

#[derive(Clone, Copy, Default)]
struct Sampling {
    /// Share of threads that compute, and so show no stack.
    on_cpu: f64,
    /// Number of threads examined; all if zero.
    threads: usize,
    /// True if stacks show the same places inside and outside the lock.
    alike: bool,
}

/// Calls `visit` with each scene of a run, and its true holder.
fn scenes(run: &Run, sampling: Sampling, mut visit: impl FnMut(Scene<'_>, Option<u32>)) {
    let mut rng = rng(5);
    for time in run.instants(1000.0, 6) {
        let holder = at(&run.holds, time).map(|hold| hold.thread);
        let mut stacks: Vec<(u32, bool, Vec<Place>)> = (0..run.waits.len() as u32)
            .map(|id| {
                let computes = rng.random::<f64>() < sampling.on_cpu;
                let places = match (computes, sampling.alike) {
                    (true, _) => Vec::new(),
                    (false, true) => stack(false),
                    (false, false) => stack(holder == Some(id)),
                };
                (id, run.waiting(id, time), places)
            })
            .collect();
        // The main thread, which waits for the other threads to end.
        stacks.push((1000, false, vec![place(0x900, 0x40), MAIN]));
        if sampling.threads > 0 {
            while stacks.len() > sampling.threads {
                stacks.swap_remove(rng.random_range(0..stacks.len()));
            }
        }
        let threads: Vec<ThreadInScene<'_>> =
            stacks.iter().map(|(thread, waits, places)| stand(*thread, *waits, places)).collect();
        let complete = sampling.threads == 0;
        visit(Scene { held: holder.is_some(), threads: &threads, complete }, holder);
    }
}

#[derive(Debug, Default)]
struct Score {
    right: u32,
    wrong: u32,
    /// The true holder is one of several candidates.
    candidate: u32,
    missed: u32,
}

fn score(program: Program, sampling: Sampling) -> Score {
    let run = program.run(10.0, 3);
    let mut places = Places::default();
    scenes(&run, sampling, |scene, _| places.learn(scene));
    let mut explained = Explained::default();
    scenes(&run, sampling, |scene, _| places.explain(scene, &mut explained));
    let mut score = Score::default();
    scenes(&run, sampling, |scene, truth| {
        let was_seen = |id| scene.threads.iter().any(|stand| stand.thread == id);
        let Some(truth) = truth.filter(|&id| was_seen(id)) else { return };
        match places.holder(scene, explained) {
            SceneHolder::Thread(id) if id == truth => score.right += 1,
            SceneHolder::OneOf(ids) if ids.contains(&truth) => score.candidate += 1,
            SceneHolder::OneOf(_) => score.missed += 1,
            SceneHolder::Thread(_) | SceneHolder::Nobody => score.wrong += 1,
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
        let score = score(program, Sampling::default());
        assert!(score.right > 1000);
        assert_eq!((score.wrong, score.candidate, score.missed), (0, 0, 0));
    }
}

#[test]
fn random_subsets_of_threads_suffice() {
    let score = score(
        Program { threads: 12, think: 40e-3, ..PLAIN },
        Sampling { threads: 4, ..Sampling::default() },
    );
    assert!(score.right > 500 && score.wrong == 0, "{score:?}");
}

#[test]
fn the_one_user_of_a_saturated_lock_that_does_not_wait_holds_it() {
    let program = Program { think: 0.2e-3, hand_off: 0.0, ..PLAIN };
    let score = score(program, Sampling { alike: true, ..Sampling::default() });
    assert!(score.right > 5 * score.candidate, "{score:?}");
    assert_eq!((score.wrong, score.missed), (0, 0), "{score:?}");
}

#[test]
fn threads_that_cannot_be_told_apart_are_candidates() {
    let alike = Sampling { alike: true, ..Sampling::default() };
    let score = score(PLAIN, alike);
    assert_eq!((score.wrong, score.missed), (0, 0), "{score:?}");
    assert!(score.candidate > 20 * score.right, "{score:?}");
}

#[test]
fn a_computing_holder_is_named_when_no_other_thread_is_possible() {
    let score = score(PLAIN, Sampling { on_cpu: 0.2, ..Sampling::default() });
    assert!(score.right > 1000 && score.wrong == 0, "{score:?}");
}

/// Scenes in which the holder computes, and other threads sleep unless they wait.
fn computing_scenes(run: &Run, mut visit: impl FnMut(Scene<'_>, Option<u32>)) {
    let (outside, main) = (stack(false), [place(0x900, 0x40), MAIN]);
    for time in run.instants(30.0, 6) {
        let holder = at(&run.holds, time).map(|hold| hold.thread);
        let mut threads: Vec<ThreadInScene<'_>> = (0..run.waits.len() as u32)
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
        SceneHolder::Thread(id) if Some(id) == truth => right += 1,
        SceneHolder::Thread(_) => wrong += 1,
        SceneHolder::Nobody | SceneHolder::OneOf(_) => {}
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
    assert_eq!(places.side(&ThreadInScene { woken: true, ..spinner }), Side::Open);
}

#[test]
fn who_has_not_run_since_the_word_was_free_is_no_holder() {
    let mut places = Places::default();
    let (outside, main) = (stack(false), [place(0x900, 0x40), MAIN]);
    let threads = [
        stand(1, false, &outside),
        ThreadInScene { bystander: true, ..stand(2, false, &outside) },
        ThreadInScene { bystander: true, ..stand(1000, false, &main) },
    ];
    let scene = Scene { held: true, threads: &threads, complete: true };
    assert_eq!(places.holder(scene, Explained::default()), SceneHolder::Thread(1));
    let all = threads.map(|stand| ThreadInScene { bystander: false, ..stand });
    let holder = places.holder(Scene { threads: &all, ..scene }, Explained::default());
    assert_eq!(holder, SceneHolder::OneOf(vec![1, 2, 1000]));
    // Samples of bystanders count for their places, too.
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
    let waiter = ThreadInScene { waits: true, ..thinker };
    // The holder computes inside and outside the lock, and sleeps inside now and then.
    let holders = [stand(2, false, &[]), stand(3, false, &[]), stand(3, false, &inside)];
    for sample in 0..400 {
        let other = if sample % 2 == 0 { thinker } else { waiter };
        let threads = [other, holders[sample % 3]];
        places.learn(Scene { held: sample % 40 > 0, threads: &threads, complete: true });
    }
    let holder = |threads: &[ThreadInScene<'_>]| {
        let scene = Scene { held: true, threads, complete: true };
        places.holder(scene, Explained::default())
    };
    assert_eq!(holder(&[thinker, holders[0]]), SceneHolder::Thread(2));
    assert_eq!(holder(&[holders[0], holders[1]]), SceneHolder::OneOf(vec![2, 3]));
    assert_eq!(places.side(&holders[2]), Side::Inside);
    assert_eq!(places.side(&ThreadInScene { thread: 9, ..holders[2] }), Side::Inside);
}

#[test]
fn a_moment_that_lasts_is_one_sample() {
    let mut places = Places::default();
    let still =
        |thread, since| ThreadInScene { still_since: Some(since), ..stand(thread, false, &[]) };
    // Thread 2 sleeps through both holds and gaps.
    for since in 100..140 {
        let threads = [still(2, since)];
        places.learn(Scene { held: true, threads: &threads, complete: true });
        places.learn(Scene { held: false, threads: &threads, complete: true });
        places.learn(Scene { held: true, threads: &threads, complete: true });
    }
    // Thread 1 computes inside the lock. It runs out of quota there or, once, before it has the
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
    assert_eq!(places.samples[&still(2, 0).without_stack()].outside, 40);
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
    for sample in 0..100 {
        let threads = scene(sample % 8);
        places.learn(Scene { held: true, threads: &threads, complete: true });
    }
    let all_wait = scene(0);
    let holder = places
        .holder(Scene { held: true, threads: &all_wait, complete: true }, Explained::default());
    assert_eq!(holder, SceneHolder::Thread(0));
    let one_thinks = scene(2);
    let holder = places
        .holder(Scene { held: true, threads: &one_thinks, complete: true }, Explained::default());
    assert_eq!(holder, SceneHolder::OneOf(vec![0, 2]));
}

#[test]
fn hostile_stacks_are_bounded() {
    let mut places = Places::default();
    let many: Vec<Place> = (0..100_000).map(|address| place(address, 0)).collect();
    // Readers cut a stack that is this long; places are bounded all the same.
    for part in many.chunks(100) {
        let threads = [stand(part[0].return_address as u32, false, part)];
        let scene = Scene { held: true, threads: &threads, complete: true };
        places.learn(scene);
        places.holder(scene, Explained::default());
    }
    assert!(places.samples.len() <= MAX_PLACES);
}
