//! Kinds of files and other objects behind descriptors.

/// Kind of file or other object behind a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Device {
    /// A regular file or a block device.
    Disk,
    /// A socket.
    Socket,
    /// The client's side of a connection, if a thread waits only for this socket in poll(2) or
    /// select(2). In other calls, a client's socket counts as `Socket`.
    ClientSocket,
    /// A pipe, named or not.
    Pipe,
    /// An unnamed pipe with both ends in the process.
    OwnPipe,
    /// A terminal.
    Terminal,
    /// A child process.
    Child,
    /// A timer.
    Timer,
    /// Changes to files (inotify, fanotify).
    Changes,
    /// An eventfd, with which threads wake each other.
    Wakeups,
    /// Signals.
    Signals,
    /// An epoll descriptor.
    Epoll,
    /// Anything else.
    Other,
}

impl Device {
    /// Determines the device from a link in `/proc/PID/fd`. A named pipe looks like a file.
    pub fn of_link(link: &[u8]) -> Device {
        let starts = |with: &[&[u8]]| with.iter().any(|with| link.starts_with(with));
        if starts(&[b"socket:"]) {
            Device::Socket
        } else if starts(&[b"pipe:"]) {
            Device::Pipe
        } else if starts(&[b"anon_inode:"]) {
            Device::of_anonymous(&link[b"anon_inode:".len()..])
        } else if starts(&[b"pidfd:"]) {
            Device::Child
        } else if starts(&[b"/dev/pts/", b"/dev/tty", b"/dev/ptmx", b"/dev/console"]) {
            Device::Terminal
        } else if starts(&[b"/dev/"]) && !starts(&[b"/dev/shm/"]) {
            Device::Other
        } else if starts(&[b"/"]) {
            Device::Disk
        } else {
            Device::Other
        }
    }

    /// `name` is the kernel's name of a file that is in no file system.
    fn of_anonymous(name: &[u8]) -> Device {
        match name {
            b"[eventfd]" => Device::Wakeups,
            b"[eventpoll]" => Device::Epoll,
            b"[timerfd]" => Device::Timer,
            b"[signalfd]" => Device::Signals,
            b"[pidfd]" => Device::Child,
            b"inotify" | b"[fanotify]" => Device::Changes,
            _ => Device::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_lead_to_devices() {
        for (link, device) in [
            (&b"socket:[123]"[..], Device::Socket),
            (b"pipe:[4]", Device::Pipe),
            (b"/dev/pts/0", Device::Terminal),
            (b"/dev/tty", Device::Terminal),
            (b"/dev/null", Device::Other),
            (b"/dev/shm/ring", Device::Disk),
            (b"/var/lib/db", Device::Disk),
            (b"anon_inode:[eventfd]", Device::Wakeups),
            (b"anon_inode:[timerfd]", Device::Timer),
            (b"anon_inode:[signalfd]", Device::Signals),
            (b"anon_inode:[eventpoll]", Device::Epoll),
            (b"anon_inode:inotify", Device::Changes),
            (b"anon_inode:[pidfd]", Device::Child),
            (b"anon_inode:[perf_event]", Device::Other),
            (b"", Device::Other),
        ] {
            assert_eq!(Device::of_link(link), device);
        }
    }
}
