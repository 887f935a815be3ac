//! A value that is read repeatedly, and the time for which all readings have agreed.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Steady<T> {
    now: Option<(T, u64, u64)>,
    always: bool,
}

impl<T> Default for Steady<T> {
    fn default() -> Self {
        Steady { now: None, always: true }
    }
}

impl<T: Copy + PartialEq> Steady<T> {
    pub(crate) fn note(&mut self, state: T, at: u64) {
        match &mut self.now {
            Some((before, _, until)) if *before == state => *until = at.max(*until),
            Some(_) => *self = Steady { now: Some((state, at, at)), always: false },
            None => self.now = Some((state, at, at)),
        }
    }

    /// Latest state, with the times of the first and the last of the consecutive readings that
    /// showed it.
    pub(crate) fn now(&self) -> Option<(T, u64, u64)> {
        self.now
    }

    pub(crate) fn always(&self) -> bool {
        self.always
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_lasts_until_another_one_is_read() {
        let mut word = Steady::default();
        assert_eq!(word.now(), None);
        word.note(2, 10);
        word.note(2, 30);
        assert_eq!(word.now(), Some((2, 10, 30)));
        assert!(word.always());
        word.note(0, 40);
        assert_eq!(word.now(), Some((0, 40, 40)));
        assert!(!word.always());
    }
}
