//! Wait targets of a process, identified by the contents of their futex words and by how threads
//! wait for them.

use super::waiting::thread_named;
use super::{ProcessAccount, READINGS, Wish};
use crate::account::wait_target::WaitTarget;
use crate::primitive::{
    Access, Caller, Context, Hold, Identity, Kind, MAX_WAIT_TARGETS, Role, Wait, Window,
};
use crate::sample::{Burst, Reason, Tick, Watch, WordRead};

impl ProcessAccount {
    pub(super) fn target_of(&mut self, word: u64, at: u64) -> Option<u32> {
        if let Some(&place) = self.by_word.get(&word) {
            return Some(place);
        }
        if self.targets.len() >= MAX_WAIT_TARGETS {
            self.is_full = true;
            return None;
        }
        let place = self.targets.len() as u32;
        self.targets.push(WaitTarget::new(word, at));
        self.by_word.insert(word, place);
        Some(place)
    }

    pub(super) fn touch(&mut self, place: u32, sample: u64) -> &mut WaitTarget {
        let target = &mut self.targets[place as usize];
        if target.now.sample != sample {
            self.touched.push(place);
            target.see(sample);
        }
        target
    }

    /// Classifies a wait target again if there is new evidence (`news`). Merges two futex words
    /// that turn out to belong to one wait target.
    pub(super) fn judge(&mut self, word: u64, place: u32, news: bool) {
        if !news {
            return;
        }
        let (threads, lately, inner) = (&self.threads, &self.lately, &self.inner);
        let is_thread = |tid| match inner {
            Some(inner) => inner.contains_key(&tid),
            None => threads.contains(&tid) || lately.has(tid),
        };
        let context = Context { is_thread: &is_thread, go: self.go, jvm: self.jvm };
        let target = &mut self.targets[place as usize];
        if !target.judge(news, &context) {
            return;
        }
        let identity = target.identity;
        target.address = identity.address;
        match identity.role() {
            Role::Parked => {
                // The word of a parked thread leads to the lock only while the thread waits. So the
                // word is read with each waiter: not every sample reads every word.
                let (from, length) = match identity.certain {
                    true => identity.window(),
                    false => target.evidence.window(),
                };
                if identity.certain {
                    self.wishes.push((word, Wish::Ignore));
                }
                self.wishes.push((word, Wish::WatchWaiters((from, length))));
            }
            Role::Lock if identity.certain => {
                self.wishes.push((word, Wish::Watch(Watch::of(&identity))));
            }
            Role::Idle if identity.certain && target.may_lock() => {
                self.wishes.push((word, Wish::Watch(Watch::of(&identity))));
            }
            Role::Idle | Role::Unknown if identity.certain => {
                self.wishes.push((word, Wish::Ignore));
            }
            Role::Lock | Role::Idle | Role::Unknown => {}
        }
        match self.by_address.get(&identity.address) {
            Some(&first) if first != place => {
                self.by_word.insert(word, first);
                let target = &mut self.targets[place as usize];
                self.room_for_unjudged += target.take_unjudged().len();
                *target = WaitTarget::new(word, target.first_seen);
                if self.targets[first as usize].adopt(identity) {
                    self.judge_earlier(first);
                }
                return;
            }
            Some(_) => {}
            None => {
                self.by_address.insert(identity.address, place);
            }
        }
        if identity.role() == Role::Lock || identity.certain {
            self.judge_earlier(place);
        }
    }

    fn judge_earlier(&mut self, place: u32) {
        let threads = self.threads_max;
        let target = &mut self.targets[place as usize];
        let earlier = target.take_unjudged();
        self.room_for_unjudged += earlier.len();
        if !target.is_lock() {
            return;
        }
        target.see_hold();
        let mut readers = None;
        if target.identity.kind() == Kind::RwLock && !self.readers.contains_key(&place) {
            readers = self.readers(place);
        }
        if let Some(readers) = readers {
            self.targets[readers as usize].add_unjudged(&earlier, threads);
        }
        self.targets[place as usize].add_unjudged(&earlier, threads);
    }

    pub(in crate::account) fn word(
        &mut self,
        read: &WordRead,
        bytes: &[u8],
        tick: &Tick,
        sample: u64,
    ) {
        if self.stops.all_along() {
            return;
        }
        let Some(place) = self.target_of(read.word, tick.at) else { return };
        let window = Window { address: read.address, bytes };
        if read.reason == Reason::Again {
            let hold = self.named_hold(place, &window);
            self.touch(place, sample).now.hold_again = Some(hold);
        }
        if let Some(&readers) = self.readers.get(&place) {
            let hold = self.named_hold(readers, &window);
            let target = self.touch(readers, sample);
            match read.reason {
                Reason::Picked => {
                    target.read(&window);
                    target.now.hold = Some(hold);
                }
                Reason::Again => target.now.hold_again = Some(hold),
                Reason::Waiter => {}
            }
        }
        let target = self.touch(place, sample);
        let might_lock = target.may_lock();
        let news = match read.reason {
            Reason::Picked => target.read(&window),
            Reason::Again => return,
            Reason::Waiter => target.read_with_waiter(&window),
        };
        if target.is_something_else() {
            self.begin_anew(place, tick.at);
            return;
        }
        if read.reason == Reason::Picked {
            let hold = self.named_hold(place, &window);
            self.touch(place, sample).now.hold = Some(hold);
        }
        let target = self.touch(place, sample);
        target.readings = target.readings.saturating_add(1);
        // After `READINGS` samples, stop reading a target that is not known to be a lock: the waits
        // of threads are evidence enough.
        let is_idle = target.readings == READINGS && target.identity.role() == Role::Idle;
        let may_lock = target.may_lock();
        if !may_lock && (is_idle || might_lock) {
            self.wishes.push((read.word, Wish::Ignore));
        }
        self.judge(read.word, place, news);
        let identity = self.targets[place as usize].identity;
        if let Some(parked) = identity.parked_on(&window) {
            self.parked.insert(read.word, (parked.lock, parked.token));
        }
    }

    pub(super) fn named_hold(&mut self, place: u32, window: &Window<'_>) -> Hold {
        let identity = self.targets[place as usize].identity;
        if let Some(record) = identity.holder_record(window) {
            return Hold::Held { owner: self.records.thread(record, identity) };
        }
        match identity.hold(window) {
            Hold::Held { owner: Some(tid) } => {
                Hold::Held { owner: thread_named(self.inner.as_ref(), tid) }
            }
            hold => hold,
        }
    }

    /// Starts over with a futex word whose memory now belongs to another object. The bytes around
    /// the word will be read to classify that object.
    fn begin_anew(&mut self, place: u32, at: u64) {
        let target = &mut self.targets[place as usize];
        let former = target.identity.address;
        self.room_for_unjudged += target.take_unjudged().len();
        target.begin_anew(at);
        let (word, window) = (target.evidence.address(), target.evidence.window());
        self.wishes.push((word, Wish::Watch(Watch::unknown(window))));
        self.wishes.push((word, Wish::WatchWaiters(window)));
        if self.by_address.get(&former) == Some(&place) {
            self.by_address.remove(&former);
        }
        self.by_word.retain(|&other, of| *of != place || other == word);
        if let Some(readers) = self.readers.remove(&place) {
            self.targets[readers as usize].twin = None;
        }
    }

    /// Returns the index of the wait target for a lock's readers, given that for its writers.
    /// Creates the target if necessary; returns `None` if there is no room.
    pub(super) fn readers(&mut self, writers: u32) -> Option<u32> {
        if let Some(&readers) = self.readers.get(&writers) {
            return Some(readers);
        }
        if self.targets.len() >= MAX_WAIT_TARGETS {
            self.is_full = true;
            return None;
        }
        let readers = self.targets.len() as u32;
        let target = WaitTarget::readers_of(&self.targets[writers as usize]);
        self.targets.push(target);
        self.readers.insert(writers, readers);
        self.targets[writers as usize].twin = Some(readers);
        self.targets[readers as usize].twin = Some(writers);
        Some(readers)
    }

    fn is_of_a_reader(&self, place: u32, wait: &Wait) -> bool {
        let identity = self.targets[place as usize].identity;
        identity.kind() == Kind::RwLock && identity.access(wait) == Access::Shared
    }

    /// Notes that a randomly picked thread waits on a word. Returns the index of the wait target.
    pub(super) fn wait(
        &mut self,
        tid: u32,
        word: u64,
        wait: Wait,
        scale: f64,
        at: u64,
        sample: u64,
    ) -> Option<u32> {
        let place = self.target_of(word, at)?;
        // Threads parked for a lock sleep on words of their own, but their waits count for the
        // lock.
        let parked = self.parked.get(&word).copied();
        let scale_here = if parked.is_some() { 0.0 } else { scale };
        if self.is_of_a_reader(place, &wait) {
            let readers = self.readers(place)?;
            self.touch(readers, sample).wait(tid, wait, scale_here);
            return Some(readers);
        }
        let news = self.touch(place, sample).wait(tid, wait, scale_here);
        self.judge(word, place, news);
        // The word may have turned out to be part of another wait target.
        let place = self.by_word.get(&word).copied().unwrap_or(place);
        let Some((lock, token)) = parked else { return Some(place) };
        let Some(lock_place) = self.target_of(lock, at) else { return Some(place) };
        if self.targets[lock_place as usize].evidence.is_empty() {
            let window = self.targets[lock_place as usize].evidence.window();
            self.wishes.push((lock, Wish::Watch(Watch::unknown(window))));
        }
        let gives_up = matches!(wait, Wait::Futex(wait) if wait.timed);
        self.targets[lock_place as usize].gives_up |= gives_up;
        let wait = Wait::Parked { token };
        if self.is_of_a_reader(lock_place, &wait) {
            let readers = self.readers(lock_place)?;
            self.touch(readers, sample).wait(tid, wait, scale);
            return Some(readers);
        }
        let news = self.touch(lock_place, sample).wait(tid, wait, scale);
        self.judge(lock, lock_place, news);
        Some(lock_place)
    }

    pub(in crate::account) fn burst(&mut self, burst: &Burst) {
        if let Some(&place) = self.by_word.get(&burst.word) {
            self.targets[place as usize].burst(burst);
        }
    }

    /// Wait targets that a waiter's stack may identify, each with the number of that stack.
    pub fn telling_stacks(&mut self) -> Vec<(u32, u32)> {
        let mut stack = |place: u32| self.targets[place as usize].telling_stack.take();
        self.telling.drain(..).filter_map(|place| Some((place, stack(place)?))).collect()
    }

    /// Adds the functions on a waiter's stack to the evidence about a wait target.
    pub fn tell(&mut self, place: u32, callers: Vec<Caller>) {
        let target = &mut self.targets[place as usize];
        target.evidence.saw_callers(callers);
        let word = target.evidence.address();
        self.judge(word, place, true);
    }

    /// Adds a lock that is known from debug information. Returns its address and the bytes that the
    /// sampler shall read there; `None` if the lock is known already or there is no room.
    pub fn declare(&mut self, identity: Identity, at: u64) -> Option<(u64, Watch)> {
        let word = identity.address;
        if self.by_word.contains_key(&word) {
            return None;
        }
        if self.targets.len() >= MAX_WAIT_TARGETS {
            self.is_full = true;
            return None;
        }
        let place = self.targets.len() as u32;
        self.targets.push(WaitTarget::declared(identity, at));
        self.by_word.insert(word, place);
        self.by_address.insert(word, place);
        Some((word, Watch::of(&identity)))
    }
}
