//! A pricing pipeline: quotes are journalled and replicated at the same time, and priced when both
//! are done: `cargo run -p threadtoll --example pricing`.
//!
//! ```text
//!            ┌─► journal ─┐
//!  writer ───┤            ├─► logic
//!            └─► replica ─┘
//! ```
//!
//! A journal is slow to write and quick to write much at once. So it takes what has come meanwhile
//! as one batch, and the further it is behind, the larger its batches are.

use std::collections::BTreeMap;
use std::error::Error;
use std::thread;
use std::time::Duration;

use threadtoll::error::SendError;
use threadtoll::ring::{Builder, Reader};

/// An event. Its slots are made once, so a quote may be large.
#[derive(Default)]
struct Quote {
    instrument: &'static str,
    bid: u64,
    ask: u64,
}

#[derive(Debug, Default)]
struct Journal {
    lines: Vec<String>,
    writes: usize,
}

fn journal(mut quotes: Reader<Quote>) -> Journal {
    let mut journal = Journal::default();
    while let Ok(batch) = quotes.recv_batch() {
        // As long as a disk takes to write a block, however full.
        thread::sleep(Duration::from_micros(100));
        let line = |quote: &Quote| format!("{} {} {}", quote.instrument, quote.bid, quote.ask);
        journal.lines.extend(batch.iter().map(line));
        journal.writes += 1;
    }
    journal
}

fn replica(mut quotes: Reader<Quote>) -> usize {
    let mut copied = 0;
    while let Ok(batch) = quotes.recv_batch() {
        copied += batch.len();
    }
    copied
}

/// The last mid price of each instrument, doubled.
type Mids = BTreeMap<&'static str, u64>;

/// Stops if quotes are no longer kept.
fn logic(mut quotes: Reader<Quote>) -> Mids {
    let mut mids = Mids::new();
    while let Ok(batch) = quotes.recv_batch() {
        if batch.has_lost_dependency() {
            break;
        }
        for quote in &batch {
            mids.insert(quote.instrument, quote.bid + quote.ask);
        }
    }
    mids
}

fn run(count: u64) -> Result<(Journal, usize, Mids), Box<dyn Error>> {
    let mut builder = Builder::new(1024, Quote::default);
    let (to_journal, to_replica) = (builder.reader(), builder.reader());
    let to_logic = builder.reader_after([&to_journal, &to_replica]);
    let mut writer = builder.start()?;
    thread::scope(|scope| {
        let journal = scope.spawn(|| journal(to_journal));
        let replica = scope.spawn(|| replica(to_replica));
        let logic = scope.spawn(|| logic(to_logic));
        for number in 0..count {
            writer.publish(|quote| {
                quote.instrument = ["AAA", "BBB", "CCC"][number as usize % 3];
                (quote.bid, quote.ask) = (1000 + number, 1002 + number);
            })?;
        }
        drop(writer);
        let ended = (journal.join(), replica.join(), logic.join());
        match ended {
            (Ok(journal), Ok(copied), Ok(mids)) => Ok((journal, copied, mids)),
            _ => Err(SendError(()).into()),
        }
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let (journal, copied, mids) = run(100_000)?;
    println!("{} quotes journalled in {} writes", journal.lines.len(), journal.writes);
    println!("{copied} copied; mid prices, doubled: {mids:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_sees_every_quote() {
        let (journal, copied, mids) = run(10_000).unwrap();
        assert_eq!((journal.lines.len(), copied), (10_000, 10_000));
        assert_eq!(journal.lines[9_999], "AAA 10999 11001");
        assert!(mids.into_iter().eq([("AAA", 22_000), ("BBB", 21_996), ("CCC", 21_998)]));
        assert!(journal.writes < 10_000, "quotes that wait are written together");
    }
}
