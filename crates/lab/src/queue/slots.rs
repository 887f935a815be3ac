//! Memory of a bounded queue's messages.

/// Default memory of a bounded queue, in bytes. It is equal for all queues, because speed depends
/// on how far a sender can get ahead.
pub const RING_BYTES: u64 = 256 << 10;

/// Memory layout of a bounded queue for 8-byte messages.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// Number of messages per group of slots.
    pub messages: u64,
    /// Bytes per group: its messages and its overhead.
    pub bytes: u64,
    /// True if the capacity is rounded down to a power of two.
    pub power_of_two: bool,
    /// Number of spare groups, as a function of the number of groups that the capacity needs.
    pub spare: fn(u64) -> u64,
    /// Layout for larger messages, as a function of their size in bytes (a multiple of 8). `None`
    /// if a group keeps its number of messages and its overhead.
    pub larger: Option<fn(u64) -> Slots>,
}

impl Slots {
    /// A slot contains only the message.
    pub const PLAIN: Slots = Slots::groups(1, 8);
    /// A slot contains a message and a sequence number.
    pub const NUMBERED: Slots = Slots::groups(1, 16);

    /// Creates a layout with this many messages and bytes per group.
    pub const fn groups(messages: u64, bytes: u64) -> Self {
        Slots { messages, bytes, power_of_two: false, spare: |_| 0, larger: None }
    }

    /// Returns the layout for messages of this size in bytes (a multiple of 8). Unless `larger` is
    /// given, a group keeps its number of messages and its overhead.
    pub fn of(self, message_bytes: u64) -> Self {
        match self.larger {
            Some(larger) if message_bytes > 8 => larger(message_bytes),
            _ => Slots { bytes: self.bytes + self.messages * (message_bytes - 8), ..self },
        }
    }

    /// Restricts the capacity to powers of two.
    pub const fn power_of_two(self) -> Self {
        Slots { power_of_two: true, ..self }
    }

    /// Returns the largest possible capacity up to `wanted` messages.
    pub fn capacity(&self, wanted: u64) -> u64 {
        if self.power_of_two { 1 << wanted.max(1).ilog2() } else { wanted }
    }

    /// Returns the largest capacity, in messages, that fits in this memory.
    pub fn capacity_within(&self, bytes: u64) -> u64 {
        let groups = bytes / self.bytes;
        self.capacity(groups.saturating_sub((self.spare)(groups)) * self.messages)
    }

    /// Returns the memory, in bytes, of a queue with this capacity.
    pub fn ring_bytes(&self, capacity: u64) -> u64 {
        let groups = capacity.div_ceil(self.messages);
        (groups + (self.spare)(groups)) * self.bytes
    }
}

/// Limit on the number of messages in a queue.
#[derive(Clone, Copy, Debug)]
pub enum Capacity {
    /// Limited only by memory.
    Unbounded,
    /// Fixed by the design of the queue, such as one message.
    Fixed,
    /// Configurable.
    Slots(Slots),
}
