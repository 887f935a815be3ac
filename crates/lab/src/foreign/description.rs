use serde::Deserialize;
use serde_json::Value;
use threadtoll_record::{Origin, Text, Wait};

use crate::queue::{Capacity, MESSAGE_BYTES, Slots};

pub(super) const MAX_BYTES: usize = 64 << 10;
/// Maximum number of queues in a description.
const MAX_ENTRIES: usize = 64;
const MAX_NAME: usize = 40;
/// Maximum length of a version or a sentence.
const MAX_TEXT: usize = 120;
const MAX_FLAGS: usize = 1000;
/// Maximum size of the slot of an 8-byte message.
const MAX_SLOT_BYTES: u64 = 4096;

#[derive(Debug, Deserialize)]
pub(super) struct Adapter {
    adapter: u32,
    language: String,
    compiler: String,
    flags: String,
    /// Parsed one by one, so that an invalid queue does not affect the others.
    queues: Vec<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Described {
    pub(super) name: String,
    version: String,
    sentence: String,
    senders: Many,
    receivers: Many,
    capacity: Bound,
    slot_bytes: Option<u64>,
    #[serde(default)]
    power_of_two: bool,
    waits: Vec<Wait>,
    pub(super) batches: bool,
    pub(super) claims: bool,
    message_bytes: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Many {
    One,
    Many,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Bound {
    Bounded,
    Unbounded,
}

pub(super) fn text(bytes: &[u8]) -> Result<String, String> {
    if bytes.len() > MAX_BYTES {
        return Err(format!("its description is longer than {} KiB", MAX_BYTES >> 10));
    }
    let text = str::from_utf8(bytes).map_err(|_| "its description is not UTF-8")?;
    Ok(text.into())
}

pub(super) fn parse(text: &str) -> Result<Adapter, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("its description is longer than {} KiB", MAX_BYTES >> 10));
    }
    let adapter: Adapter = serde_json::from_str(text)
        .map_err(|error| format!("its description is invalid: {}", reason(&error)))?;
    if adapter.adapter != 1 {
        return Err(format!("it is for version {} of the interface, not 1", adapter.adapter));
    }
    match adapter.queues.len() {
        0 => Err("it describes no queue".into()),
        1..=MAX_ENTRIES => Ok(adapter),
        _ => Err(format!("it describes more than {MAX_ENTRIES} queues")),
    }
}

/// Drops the position, which means nothing in a text of one line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    clean(text.split(" at line ").next().unwrap_or_default())
}

/// Removes control characters from a text and limits its length.
pub(super) fn clean(text: &str) -> String {
    long(text, MAX_TEXT)
}

fn long(text: &str, most: usize) -> String {
    text.chars().filter(|character| !character.is_control()).take(most).collect()
}

/// Wait strategies other than these three exist only for our own queues.
pub(super) fn are_of_peers(waits: &[Wait]) -> bool {
    let known = |wait| matches!(wait, &Wait::Poll | &Wait::PollBackoff | &Wait::Block);
    !waits.is_empty() && waits.iter().all(known)
}

/// A name must be easy to type, and must not look like an option.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let typed = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
    };
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    if begins && name.len() <= MAX_NAME && name.chars().all(typed) {
        return Ok(());
    }
    Err(format!(
        "a name has at most {MAX_NAME} lowercase letters, digits and hyphens, and starts with a \
         letter"
    ))
}

impl Adapter {
    pub(super) fn origin(&self) -> Origin {
        Origin::of_language(&self.language)
    }

    /// Language, compiler and flags.
    pub(super) fn build(&self) -> (Text, Text, Text) {
        let text = |text: &str| Text::from(long(text, MAX_FLAGS));
        (text(&self.language), text(&self.compiler), text(&self.flags))
    }

    pub(super) fn into_queues(self) -> Vec<(String, Result<Described, String>)> {
        self.queues.into_iter().map(queue).collect()
    }
}

fn queue(value: Value) -> (String, Result<Described, String>) {
    let name = value.get("name").and_then(Value::as_str).map_or("a queue".into(), clean);
    let read = serde_json::from_value::<Described>(value)
        .map_err(|error| format!("its description is invalid: {}", reason(&error)));
    let checked = read.and_then(|queue| {
        queue.check()?;
        Ok(queue)
    });
    (name, checked)
}

impl Described {
    fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        if !are_of_peers(&self.waits) {
            return Err("its wait strategies must be some of poll, poll-backoff and block".into());
        }
        if self.capacity == Bound::Bounded
            && !self.slot_bytes.is_some_and(|bytes| (8..=MAX_SLOT_BYTES).contains(&bytes))
        {
            return Err(format!(
                "it is bounded, so its slots must have 8 to {MAX_SLOT_BYTES} bytes"
            ));
        }
        if !self.message_bytes.contains(&8) {
            return Err("it does not carry messages of 8 bytes".into());
        }
        Ok(())
    }

    pub(super) fn version(&self) -> String {
        match clean(&self.version) {
            version if version.is_empty() => "unknown".into(),
            version => version,
        }
    }

    pub(super) fn sentence(&self) -> String {
        clean(&self.sentence)
    }

    pub(super) fn bounded(&self) -> bool {
        self.capacity == Bound::Bounded
    }

    pub(super) fn many_senders(&self) -> bool {
        self.senders == Many::Many
    }

    pub(super) fn many_receivers(&self) -> bool {
        self.many_senders() && self.receivers == Many::Many
    }

    pub(super) fn capacity(&self) -> Capacity {
        let slots = Slots::groups(1, self.slot_bytes.unwrap_or(8));
        match (self.capacity, self.power_of_two) {
            (Bound::Unbounded, _) => Capacity::Unbounded,
            (Bound::Bounded, false) => Capacity::Slots(slots),
            (Bound::Bounded, true) => Capacity::Slots(slots.power_of_two()),
        }
    }

    /// Message sizes that the queue supports and that scenarios use.
    pub(super) fn message_bytes(&self) -> Vec<u64> {
        MESSAGE_BYTES.into_iter().filter(|bytes| self.message_bytes.contains(bytes)).collect()
    }

    /// A queue that polls is measured with and without pauses.
    pub(super) fn waits(&self) -> Vec<Wait> {
        let polls = self.waits.contains(&Wait::Poll);
        let has = |wait: &Wait| self.waits.contains(wait) || (polls && *wait == Wait::PollBackoff);
        [Wait::Poll, Wait::PollBackoff, Wait::Block].into_iter().filter(has).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"adapter":1,"language":"c++","compiler":"g++","flags":"","future":[1],
        "queues":[{"name":"ring","version":"","sentence":"a ring","senders":"one",
        "receivers":"one","capacity":"bounded","slot_bytes":8,"waits":["poll","block"],
        "batches":false,"claims":false,"message_bytes":[8]}]}"#;

    fn only(text: &str) -> Result<Described, String> {
        parse(text)?.into_queues().remove(0).1
    }

    #[test]
    fn a_description_may_have_members_that_nobody_knows() {
        assert_eq!(parse(GOOD).unwrap().origin(), Origin::Cpp);
        let queue = only(GOOD).unwrap();
        assert_eq!(queue.waits(), [Wait::Poll, Wait::PollBackoff, Wait::Block]);
        assert_eq!((queue.version(), queue.message_bytes()), ("unknown".into(), vec![8]));
        assert!(queue.bounded() && !queue.many_senders() && !queue.batches && !queue.claims);
    }

    #[test]
    fn a_bad_description_is_refused_with_the_reason() {
        let long = " ".repeat(MAX_BYTES + 1);
        let deep = "[".repeat(10_000);
        let many = GOOD.replace("[{", &format!("[{}{{", "1,".repeat(MAX_ENTRIES)));
        for (text, why) in [
            ("", "EOF"),
            ("{}", "missing field `adapter`"),
            ("[1", "EOF"),
            (&deep, "invalid type"),
            (&long, "longer than 64 KiB"),
            (&many, "more than 64 queues"),
            (&GOOD.replace("\"adapter\":1", "\"adapter\":2"), "version 2 of the interface"),
            (&GOOD.replace("\"language\"", "\"tongue\""), "missing field `language`"),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.contains(why) && !refused.contains('\n'), "{refused}");
        }
        assert!(text(b"\xff\xfe").unwrap_err().contains("UTF-8"));
        assert!(text(long.as_bytes()).unwrap_err().contains("longer"));
    }

    #[test]
    fn a_bad_queue_costs_the_others_nothing() {
        for (part, with) in [
            ("\"ring\"", "\"Ring\""),
            ("\"ring\"", "\"--help\""),
            ("\"ring\"", "\"a ring\""),
            ("\"ring\"", "7"),
            ("\"one\"", "\"some\""),
            ("\"slot_bytes\":8", "\"slot_bytes\":-8"),
            ("\"slot_bytes\":8", "\"slot_bytes\":0"),
            ("\"slot_bytes\":8", "\"slot_bytes\":8000000000"),
            ("\"slot_bytes\":8,", ""),
            ("[\"poll\",\"block\"]", "[]"),
            ("[\"poll\",\"block\"]", "[\"stare\"]"),
            ("\"message_bytes\":[8]", "\"message_bytes\":[64]"),
            ("\"batches\":false,", ""),
        ] {
            let bad = GOOD.replace(part, with);
            let refused = only(&bad).unwrap_err();
            assert!(!refused.contains('\n'), "{refused}");
            let (start, end) = bad.split_once("[{").unwrap();
            let (queue, _) = end.rsplit_once("}]").unwrap();
            let (_, good) = GOOD.split_once("[{").unwrap();
            let both = format!("{start}[{{{queue}}},{{{good}");
            let both = parse(&both).unwrap().into_queues();
            assert!(both.len() == 2 && both[0].1.is_err() && both[1].1.is_ok(), "{with}");
        }
    }
}
