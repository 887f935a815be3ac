use std::fmt;

use super::progress::Progress;
use super::reader::Reader;
use super::shared::Ring;
use super::writer::Writer;
use crate::error::StartError;
use crate::sync::Arc;
use crate::wait::Wait;

/// Options of a ring.
///
/// ```
/// use threadtoll::ring;
/// use threadtoll::wait::Wait;
///
/// let mut builder = ring::Options::new().wait(Wait::Spin).builder(1024, || 0u64);
/// let reader = builder.reader();
/// let writer = builder.start()?;
/// # drop((reader, writer));
/// # Ok::<(), threadtoll::error::StartError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    wait: Wait,
    fence: bool,
}

impl Options {
    /// The options that [`Builder::new`] uses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how all ends [wait](crate::wait).
    pub fn wait(self, wait: Wait) -> Self {
        Options { wait, ..self }
    }

    /// Makes each end execute a fence whenever it publishes or has read a batch, so that an end
    /// that goes to sleep interrupts no other thread.
    ///
    /// By default an end that goes to sleep may interrupt every CPU that runs a thread of the
    /// process: see [what a sleep costs others](crate::wait#what-a-sleep-costs-others). This is not
    /// needed with [`Wait::Spin`] or [`Wait::SpinYield`], which never sleep.
    pub fn fence(self) -> Self {
        Options { fence: true, ..self }
    }

    /// Makes the slots of a ring: see [`Builder::new`].
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, if the memory exceeds the address space, or if `make` panics. If the
    /// allocator has no memory left, the process aborts, as with a `Vec`.
    pub fn builder<T: Send + Sync>(self, capacity: usize, make: impl FnMut() -> T) -> Builder<T> {
        assert!(capacity > 0, "a ring needs a capacity of at least 1");
        let ring = Ring::new(capacity, make, self.wait, self.fence);
        Builder { writer: Writer::new(Arc::new(ring)) }
    }
}

/// A [ring](crate::ring) that gets its readers.
///
/// If the builder is dropped without a [`start`](Builder::start), or if that fails, its readers are
/// disconnected.
pub struct Builder<T> {
    writer: Writer<T>,
}

impl<T: Send + Sync> Builder<T> {
    /// Makes the slots of a ring whose writer may be ahead of the slowest reader by `capacity`
    /// events.
    ///
    /// `make` is called once for each slot. There are more of them than `capacity`, by at most two
    /// frames: there is one for each place in a whole number of frames, and there is one frame more
    /// than `capacity` needs. A frame is usually a cache line, with seven events of 8 bytes. A
    /// frame of events that take no memory, such as `()`, has 65,536 of them.
    ///
    /// If the process already has other threads, creating its first queue takes some milliseconds,
    /// unless [`prepare`](crate::prepare) was called.
    ///
    /// ```
    /// let mut builder = threadtoll::ring::Builder::new(1024, Vec::<u8>::new);
    /// let reader = builder.reader();
    /// let mut writer = builder.start()?;
    /// assert_eq!(writer.capacity(), 1024);
    /// // The vectors are reused, and with them their memory.
    /// writer.publish(|line| {
    ///     line.clear();
    ///     line.extend(b"toll");
    /// })?;
    /// # drop(reader);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, if the memory exceeds the address space, or if `make` panics. If the
    /// allocator has no memory left, the process aborts, as with a `Vec`.
    pub fn new(capacity: usize, make: impl FnMut() -> T) -> Self {
        Options::new().builder(capacity, make)
    }

    /// Adds a reader that follows the writer.
    ///
    /// The reader may be used at once, on any thread. It waits until the ring is started.
    pub fn reader(&mut self) -> Reader<T> {
        self.add(Vec::new())
    }

    /// Adds a reader that receives an event after all of these have read it. Without any, it
    /// follows the writer.
    ///
    /// Readers cannot wait for each other in a circle, because each comes after readers that were
    /// there before it.
    ///
    /// Only the readers that are named here are reported as
    /// [lost](super::Batch::has_lost_dependency) once they have left, and not those after which
    /// they come themselves. So name every reader whose loss matters, even if it comes before
    /// another one that is named, too.
    ///
    /// ```
    /// use threadtoll::ring;
    ///
    /// let mut builder = ring::Builder::new(8, || 0);
    /// let (mut journal, mut replica) = (builder.reader(), builder.reader());
    /// let mut logic = builder.reader_after([&journal, &replica]);
    /// let mut writer = builder.start()?;
    /// writer.publish(|event| *event = 1)?;
    /// drop(journal.recv_batch()?);
    /// assert!(logic.try_recv_batch().is_err(), "the replica has not read it");
    /// drop(replica.recv_batch()?);
    /// assert!(logic.recv_batch()?.iter().eq(&[1]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If one of the readers belongs to another ring.
    pub fn reader_after<'a>(
        &mut self,
        readers: impl IntoIterator<Item = &'a Reader<T>>,
    ) -> Reader<T>
    where
        T: 'a,
    {
        let mut dependencies: Vec<Arc<Progress>> = Vec::new();
        for reader in readers {
            let same = Arc::ptr_eq(reader.ring(), self.writer.ring());
            assert!(same, "this reader belongs to another ring");
            dependencies.push(Arc::clone(reader.progress()));
        }
        self.add(dependencies)
    }

    fn add(&mut self, dependencies: Vec<Arc<Progress>>) -> Reader<T> {
        let ring = Arc::clone(self.writer.ring());
        let progress = Arc::new(ring.writer.reader(ring.wait, ring.must_fence, dependencies));
        self.writer.add_reader(&progress);
        Reader::new(ring, progress)
    }

    /// Starts the ring. From now on there are no further readers.
    ///
    /// # Errors
    ///
    /// If there is no reader, or if one was dropped: that is a mistake more often than not, and the
    /// readers after it would not wait for it.
    ///
    /// ```
    /// use threadtoll::error::StartError;
    /// use threadtoll::ring::Builder;
    ///
    /// assert_eq!(Builder::new(8, || 0).start().unwrap_err(), StartError::NoReader);
    /// ```
    pub fn start(self) -> Result<Writer<T>, StartError> {
        let mut writer = self.writer;
        if writer.has_lost_reader() {
            return Err(StartError::ReaderDropped);
        }
        if writer.readers() == 0 {
            return Err(StartError::NoReader);
        }
        writer.sort_readers();
        Ok(writer)
    }
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("readers", &self.writer.readers()).finish_non_exhaustive()
    }
}
