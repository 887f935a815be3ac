//! Cost of one unwind, printed.

use std::time::Instant;

use threadtoll_stacks::stack::{Stack, StackBytes};

use super::observe::Observer;
use super::programs::{compile, rustc, start};

const ROUNDS: usize = 2000;

#[test]
#[ignore = "compilers: ci/long/profile-stacks.sh"]
fn cost_of_an_unwind() {
    let folder = tempfile::tempdir().unwrap();
    for (compiler, source, options) in [
        ("cc", "chain.c", "-O0 -pthread"),
        ("cc", "chain.c", "-O2 -pthread"),
        (&rustc(), "chain.rs", "--edition=2024 -C opt-level=2"),
    ] {
        let path = folder.path().join("chain");
        assert!(compile(compiler, source, options, &path));
        let (program, chains) = start(&path, 48, 1);
        let mut observer = Observer::new(program.0.id());
        let copies: Vec<_> = chains.iter().map(|(tid, _)| observer.copy(*tid, 64 << 10)).collect();
        let mut stack = Stack::default();
        let mut unwind = |frames: &mut usize| {
            for (registers, base, bytes) in &copies {
                let (space, images) = (&observer.space, &observer.images);
                let bytes = StackBytes { base: *base, bytes };
                observer.unwinder.unwind(space, images, *registers, bytes, &mut stack);
                *frames += stack.frames.len();
            }
        };
        let (mut first_frames, mut frames) = (0, 0);
        let start = Instant::now();
        unwind(&mut first_frames);
        let first = start.elapsed();
        let start = Instant::now();
        for _ in 0..ROUNDS {
            unwind(&mut frames);
        }
        let stacks = copies.len() * ROUNDS;
        println!(
            "{source} {options}: first {:.1} µs a stack, then {:.2} µs, {:.0} frames each",
            first.as_secs_f64() * 1e6 / copies.len() as f64,
            start.elapsed().as_secs_f64() * 1e6 / stacks as f64,
            frames as f64 / stacks as f64,
        );
        assert_eq!(frames, first_frames * ROUNDS);
    }
}
