//! Signals that end the sampling, and signals that are forwarded to a launched program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use signal_hook_registry::register_sigaction;

use crate::failure::Failure;

#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    stop: Arc<AtomicBool>,
    /// One bit per signal number, set until the signal is forwarded to the launched program.
    pending: Arc<AtomicU64>,
}

impl Signals {
    /// Handles signals from now on.
    ///
    /// A second signal ends this process at once, unless the process must wait for a launched
    /// program or, with `live`, restore the terminal. With `live`, SIGQUIT is handled like the
    /// other signals.
    pub(super) fn listen(launched: bool, live: bool) -> Result<Self, Failure> {
        let signals = Signals::default();
        let quit = live.then_some(SIGQUIT);
        // Under nohup, SIGHUP stays ignored, because closing the terminal must not end the
        // sampling.
        let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up).chain(quit) {
            signals
                .register(signal, !launched && !live)
                .map_err(|error| Failure::run(format!("cannot listen for signals: {error}")))?;
        }
        Ok(signals)
    }

    fn register(&self, signal: i32, at_once: bool) -> io::Result<()> {
        if at_once {
            let stop = Arc::clone(&self.stop);
            flag::register_conditional_shutdown(signal, 130, stop)?;
        }
        let (stop, pending) = (Arc::clone(&self.stop), Arc::clone(&self.pending));
        let action = move |info: &libc::siginfo_t| {
            stop.store(true, Ordering::SeqCst);
            // A terminal sends Ctrl-C to its whole foreground process group, which includes the
            // launched program.
            let from_terminal = signal == SIGINT && info.si_code == libc::SI_KERNEL;
            if signal != SIGQUIT && !from_terminal {
                pending.fetch_or(1 << signal, Ordering::SeqCst);
            }
        };
        // SAFETY: the action does nothing but two atomic operations.
        unsafe { register_sigaction(signal, action) }?;
        Ok(())
    }

    /// Becomes true at the first signal.
    pub(super) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Ends the sampling, as a signal would.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Signals that must still be forwarded to a launched program. Each is returned once.
    pub(super) fn take_pending(&self) -> impl Iterator<Item = i32> + use<> {
        let pending = self.pending.swap(0, Ordering::SeqCst);
        (1..64).filter(move |signal| pending & (1 << signal) != 0)
    }
}

fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no new action is given, and `action` has room for the old one.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: `action` was written if the call succeeded.
    asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}
