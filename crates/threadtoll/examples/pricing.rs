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
use std::io::{self, Write};
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
struct Disk {
    text: String,
    writes: usize,
    /// Number of bytes for which there is room; `None` if there is no limit.
    full_at: Option<usize>,
}

impl Write for Disk {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        // As long as a disk takes to write a block, however full.
        thread::sleep(Duration::from_micros(100));
        if self.full_at.is_some_and(|full_at| self.text.len() + block.len() > full_at) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.text.push_str(&String::from_utf8_lossy(block));
        self.writes += 1;
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes all quotes that wait at once.
fn journal(mut quotes: Reader<Quote>, disk: &mut Disk) -> io::Result<()> {
    while let Ok(mut batch) = quotes.recv_batch() {
        let line = |quote: &Quote| format!("{} {} {}\n", quote.instrument, quote.bid, quote.ask);
        let block: String = batch.iter().map(line).collect();
        if let Err(error) = disk.write_all(block.as_bytes()) {
            // Dropping the batch would tell the logic that these quotes are in the journal.
            batch.truncate(0);
            return Err(error);
        }
    }
    Ok(())
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

/// Publishes this many quotes. Returns the result of the journal, the number of quotes copied, and
/// the result of the logic.
fn run(count: u64, disk: &mut Disk) -> Result<(io::Result<()>, usize, Mids), Box<dyn Error>> {
    let mut builder = Builder::new(1024, Quote::default);
    let (to_journal, to_replica) = (builder.reader(), builder.reader());
    let to_logic = builder.reader_after([&to_journal, &to_replica]);
    let mut writer = builder.start()?;
    thread::scope(|scope| {
        // Each thread owns its reader, so the reader leaves if the thread panics.
        let journal = scope.spawn(move || journal(to_journal, disk));
        let replica = scope.spawn(move || replica(to_replica));
        let logic = scope.spawn(move || logic(to_logic));
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
    let mut disk = Disk::default();
    let (journalled, copied, mids) = run(100_000, &mut disk)?;
    journalled?;
    println!("{} quotes journalled in {} writes", disk.text.lines().count(), disk.writes);
    println!("{copied} copied; mid prices, doubled: {mids:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_sees_every_quote() {
        let mut disk = Disk::default();
        let (journalled, copied, mids) = run(10_000, &mut disk).unwrap();
        journalled.unwrap();
        assert_eq!((disk.text.lines().count(), copied), (10_000, 10_000));
        assert_eq!(disk.text.lines().last(), Some("AAA 10999 11001"));
        assert!(mids.into_iter().eq([("AAA", 22_000), ("BBB", 21_996), ("CCC", 21_998)]));
        assert!(disk.writes < 10_000, "quotes that wait are written together");
    }

    #[test]
    fn a_quote_that_is_not_journalled_is_not_priced() {
        let mut disk = Disk { full_at: Some(50_000), ..Disk::default() };
        let (journalled, copied, mids) = run(10_000, &mut disk).unwrap();
        assert_eq!(journalled.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(copied, 10_000);
        let count = disk.text.lines().count() as u64;
        assert!(count < 10_000);
        // Quote `number` has the doubled mid price `2002 + 2 * number`.
        assert!(mids.into_values().all(|mid| mid < 2002 + 2 * count));
    }
}
