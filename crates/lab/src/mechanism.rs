//! Mechanisms: ways in which one thread makes another proceed, one family per file.
//!
//! A mechanism only creates its two ends. The engine decides how many messages they exchange, which
//! messages are time-stamped, and on which CPUs the ends run. A message is a sequence number,
//! followed by further words if it is larger than 8 bytes. The receiver verifies all of it.

mod condvar;
mod crossed;
mod lanes;
mod message;
mod stream;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

pub use threadtoll_record::Class;
use threadtoll_record::{Build, Layout, Pause, Subject};

use crate::error::Make;
use crate::program::Program;
use crate::program_file::ProgramFile;
use crate::rows::{Rows, row};

pub use crate::error::Unavailable;
pub use crate::exchange::{Ends, Exchange, Solo};

macro_rules! mechanisms {
    ($($vis:vis $file:ident),+ $(,)?) => {
        $($vis mod $file;)+

        fn ours() -> Vec<Mechanism> {
            let mut all = Vec::new();
            $(all.extend($file::mechanisms());)+
            all
        }
    };
}

// Listed in this order: from the cheapest class to the most expensive.
mechanisms! {
    function_call,
    fiber_switch,
    async_wake,
    pub(crate) atomic,
    spin_yield,
    sleep_poll,
    pub(crate) futex,
    park,
    std_condvar,
    pthread_condvar,
    parking_lot_condvar,
    semaphore,
    eventfd,
    os_pipe,
    socketpair,
    tcp_loopback,
    std_mpsc,
}

/// Parameters of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes per message, including the sequence number: a multiple of 8, at least 8.
    pub payload_bytes: usize,
    /// Cache-line layout of the counters.
    pub layout: Layout,
    /// Pause hint of a spinning end.
    pub pause: Pause,
}

type MakeEnds = dyn Fn(&Settings) -> Result<Ends, Unavailable> + Send + Sync;

/// A mechanism, as registered.
#[derive(Clone)]
pub struct Mechanism {
    /// Name of the mechanism on the command line and in files.
    pub name: String,
    /// One-sentence description.
    pub sentence: String,
    /// Way in which the ends wait.
    pub class: Class,
    /// True if the cache-line layout can be chosen.
    pub has_layout: bool,
    /// True if the pause hint can be chosen.
    pub has_pause: bool,
    /// Build of the mechanism, if it was not built with this program.
    pub built: Option<Build>,
    make: Arc<MakeEnds>,
    /// Program in another language that measures the mechanism, instead of our threads.
    elsewhere: Option<ProgramFile>,
}

row!(Mechanism, ours());

/// All known mechanisms.
pub type Mechanisms = Rows<Mechanism>;

impl Mechanism {
    /// Creates a mechanism. `make` runs on the leading end's thread; it creates both ends and
    /// touches all memory that they share.
    pub fn new(
        name: impl Into<String>,
        class: Class,
        sentence: impl Into<String>,
        make: impl Fn(&Settings) -> Result<Ends, Unavailable> + Send + Sync + 'static,
    ) -> Self {
        Mechanism {
            name: name.into(),
            sentence: sentence.into(),
            class,
            has_layout: false,
            has_pause: false,
            built: None,
            make: Arc::new(make),
            elsewhere: None,
        }
    }

    pub(crate) fn elsewhere(
        name: &str,
        class: Class,
        sentence: &str,
        file: ProgramFile,
        built: Build,
    ) -> Self {
        let never = |_: &Settings| {
            let error = std::io::Error::other("it runs in a process of its own");
            Err(Unavailable::new("its program", error))
        };
        let mechanism = Mechanism::new(name, class, sentence, never);
        Mechanism { elsewhere: Some(file), built: Some(built), ..mechanism }
    }

    /// Returns `true` if a program measures the mechanism in its own process.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// Gives the mechanism a choice of line layout.
    pub fn with_layout(self) -> Self {
        Mechanism { has_layout: true, ..self }
    }

    /// Gives the mechanism a choice of pause hint.
    pub fn with_pause(self) -> Self {
        Mechanism { has_pause: true, ..self }
    }

    /// The subject of the mechanism's cells.
    pub fn subject(&self) -> Subject {
        Subject::mechanism(self.name.as_str(), self.class)
    }

    /// Creates both ends.
    ///
    /// # Errors
    ///
    /// If the kernel refuses a resource.
    pub(crate) fn make(&self, settings: &Settings) -> Result<Ends, Unavailable> {
        (self.make)(settings)
    }

    pub(crate) fn maker(&self, settings: Settings) -> Make<Ends> {
        let make = Arc::clone(&self.make);
        Arc::new(move || make(&settings))
    }

    pub(crate) fn program(&self, settings: Settings) -> Program {
        let here = Program::Exchange { make: self.maker(settings), class: self.class };
        here.or_elsewhere(self.elsewhere.as_ref())
    }
}
