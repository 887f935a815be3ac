//! Rare messages: idle states of the receiver's CPU.

use crate::{BlockKind, Count, Idle, IdleBlock, IdleState, Text};

use super::{Folding, significant};

/// Idle states of a cell; `None` if they were not read.
pub(super) fn idle(folding: &Folding<'_>) -> Option<Idle> {
    let blocks = folding.blocks(BlockKind::Stamped);
    let blocks: Vec<&IdleBlock> =
        blocks.filter_map(|block| block.figures.open_loop()?.idle.as_ref()).collect();
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
