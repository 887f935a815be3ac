//! An actor: one thread owns the accounts, and waits for transfers, audits and a stop at once:
//! `cargo run -p threadtoll --example actor`.
//!
//! Transfers come from many threads, through a funnel. Each audit is a call, which waits for its
//! answer. The stop is a one-shot, whose sender may just be dropped.

use std::collections::BTreeMap;
use std::thread::{self, JoinHandle};

use threadtoll::call::{Callee, Caller};
use threadtoll::select::Select;
use threadtoll::{call, funnel, oneshot};

struct Transfer {
    from: &'static str,
    to: &'static str,
    amount: u64,
}

type Accounts = BTreeMap<&'static str, u64>;

struct Actor {
    accounts: Accounts,
    refused: usize,
}

impl Actor {
    fn transfer(&mut self, transfer: &Transfer) {
        let balance = self.accounts.entry(transfer.from).or_default();
        match balance.checked_sub(transfer.amount) {
            Some(left) => {
                *balance = left;
                *self.accounts.entry(transfer.to).or_default() += transfer.amount;
            }
            None => self.refused += 1,
        }
    }

    fn run(
        mut self,
        mut transfers: funnel::Receiver<Transfer>,
        audits: Callee<(), u64>,
        mut stop: oneshot::Receiver<()>,
    ) -> Actor {
        let mut select = Select::new();
        // An end whose other side is gone would stay ready.
        let mut audits = Some(audits);
        loop {
            match select.ready((&mut transfers, &mut audits, &mut stop)) {
                0 => match transfers.try_recv() {
                    Ok(transfer) => self.transfer(&transfer),
                    Err(_) => return self,
                },
                1 => {
                    if let Some(open) = &mut audits {
                        match open.try_recv() {
                            Ok(()) => open.answer(self.accounts.values().sum()),
                            Err(_) => audits = None,
                        }
                    }
                }
                // Told to stop, or nobody is left who could tell.
                _ => {
                    while let Ok(transfer) = transfers.try_recv() {
                        self.transfer(&transfer);
                    }
                    return self;
                }
            }
        }
    }
}

struct Bank {
    transfers: funnel::Sender<Transfer>,
    audits: Caller<(), u64>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Actor>,
}

fn open_bank(accounts: Accounts) -> Bank {
    let (transfers, to_transfer) = funnel::bounded(1024);
    let (audits, to_audit) = call::line();
    let (stop, stopped) = oneshot::channel();
    let actor = Actor { accounts, refused: 0 };
    let running = thread::spawn(move || actor.run(to_transfer, to_audit, stopped));
    Bank { transfers, audits, stop, running }
}

/// Moves money from three threads while it is counted. Returns the counts, and the actor.
fn run() -> Result<(Vec<u64>, Actor), Box<dyn std::error::Error>> {
    let Bank { transfers, mut audits, stop, running } =
        open_bank([("ann", 500), ("bob", 300), ("eve", 200)].into());
    let counted = thread::scope(|scope| {
        for (from, to) in [("ann", "bob"), ("bob", "eve"), ("eve", "ann")] {
            let transfers = transfers.clone();
            scope.spawn(move || {
                for amount in 0..1_000 {
                    let _ = transfers.send(Transfer { from, to, amount: amount % 10 });
                }
            });
        }
        (0..100).map(|_| audits.call(())).collect::<Result<Vec<u64>, _>>()
    })?;
    let _ = stop.send(());
    let actor = running.join().map_err(|_| "the actor panicked")?;
    Ok((counted, actor))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (counted, actor) = run()?;
    let (least, most) = (counted.iter().min(), counted.iter().max());
    println!("counted {} times: {least:?} to {most:?}", counted.len());
    println!("{:?}, {} transfers refused", actor.accounts, actor.refused);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_money_is_made_or_lost() {
        let (counted, actor) = run().unwrap();
        assert_eq!(counted, [1_000; 100]);
        assert_eq!(actor.accounts.values().sum::<u64>(), 1_000);
    }

    #[test]
    fn the_actor_ends_when_nobody_can_stop_it() {
        let Bank { transfers, audits, stop, running } = open_bank([("ann", 5)].into());
        drop(audits);
        transfers.send(Transfer { from: "ann", to: "bob", amount: 3 }).unwrap();
        transfers.send(Transfer { from: "ann", to: "bob", amount: 3 }).unwrap();
        drop(stop);
        let actor = running.join().unwrap();
        assert!(actor.accounts.into_iter().eq([("ann", 2), ("bob", 3)]));
        assert_eq!(actor.refused, 1);
    }
}
