//! Rare messages: idle states of the receiver's CPU, and what was done between the messages.

use crate::{
    BetweenBlock, BetweenMessages, BlockKind, Count, Idle, IdleBlock, IdleState, Text, Warning,
};

use super::{Folding, significant, warnings};

/// Largest share of messages for which an end is unready that goes without a warning.
const UNREADY: f64 = 0.01;

/// Idle states of a cell; `None` if they were not read.
pub(super) fn idle(folding: &Folding<'_>) -> Option<Idle> {
    let blocks = folding.blocks(BlockKind::Stamped);
    let blocks: Vec<&IdleBlock> = blocks.filter_map(|block| block.idle.as_ref()).collect();
    let window_ns = blocks.iter().map(|block| block.window_ns).sum::<Count>().as_f64();
    let names = &blocks.first()?.states;
    let state = |(at, name): (usize, &Text)| {
        let own = || blocks.iter().filter_map(move |block| block.states.get(at));
        let time_ns = own().map(|own| own.time_ns).sum::<Count>().as_f64();
        IdleState {
            name: name.clone(),
            share: significant((time_ns / window_ns.max(1.0)).min(1.0)).into(),
            entered: own().map(|own| own.entered).sum(),
        }
    };
    let names = names.iter().map(|own| &own.name);
    Some(Idle { states: names.enumerate().map(state).collect() })
}

/// What was done between the messages of a cell; `None` if nothing was.
pub(super) fn between(folding: &Folding<'_>) -> Option<BetweenMessages> {
    let blocks = folding.blocks(BlockKind::Stamped);
    let blocks: Vec<BetweenBlock> = blocks.filter_map(|block| block.between).collect();
    let sum = |of: fn(&BetweenBlock) -> Count| blocks.iter().map(of).sum::<Count>().as_f64();
    let messages = sum(|block| block.messages).max(1.0);
    Some(BetweenMessages {
        bytes: blocks.iter().map(|block| block.bytes).min()?,
        page_faults_per_message: significant(sum(|block| block.page_faults) / messages).into(),
        unready_share: significant((sum(|block| block.unready) / messages).min(1.0)).into(),
    })
}

/// Messages that waited for an end and not only for the queue.
pub(super) fn unready(between: BetweenMessages) -> Option<Warning> {
    let share = between.unready_share.get();
    (share > UNREADY).then(|| warnings::unready(format!("{:.0}", share * 100.0)))
}
