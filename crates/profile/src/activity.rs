//! What a thread was doing when it was looked at, as `/proc/PID/task/TID/syscall` says it.

/// What a thread was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// On a CPU, or waiting for one.
    OnCpu,
    /// Asleep in a system call.
    Asleep(SystemCall),
    /// Asleep outside any system call: a page fault, or stopped.
    Faulting {
        /// Stack pointer.
        stack_pointer: u64,
        /// Program counter.
        program_counter: u64,
    },
}

/// A system call in which a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SystemCall {
    /// Number, as the machine's architecture counts.
    pub number: u32,
    /// Arguments, as they lie in registers: those that the call does not take mean nothing.
    pub arguments: [u64; 6],
    /// Stack pointer of the caller.
    pub stack_pointer: u64,
    /// Program counter of the caller: just after the instruction that entered the kernel.
    pub program_counter: u64,
}

impl Activity {
    /// Reads a line of `/proc/PID/task/TID/syscall`. `None` if the kernel never writes such a line.
    pub fn parse(line: &[u8]) -> Option<Activity> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if line == b"running" {
            return Some(Activity::OnCpu);
        }
        let mut fields = line.split(|&byte| byte == b' ');
        let number = fields.next()?;
        if number == b"-1" {
            let [stack_pointer, program_counter] = numbers(&mut fields)?;
            return Some(Activity::Faulting { stack_pointer, program_counter });
        }
        let number = std::str::from_utf8(number).ok()?.parse().ok()?;
        let arguments = numbers(&mut fields)?;
        let [stack_pointer, program_counter] = numbers(&mut fields)?;
        Some(Activity::Asleep(SystemCall { number, arguments, stack_pointer, program_counter }))
    }

    /// Stack pointer and program counter of a thread that sleeps.
    pub fn position(&self) -> Option<(u64, u64)> {
        match *self {
            Activity::OnCpu => None,
            Activity::Asleep(call) => Some((call.stack_pointer, call.program_counter)),
            Activity::Faulting { stack_pointer, program_counter } => {
                Some((stack_pointer, program_counter))
            }
        }
    }
}

fn numbers<'a, const N: usize>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        let digits = std::str::from_utf8(fields.next()?).ok()?.strip_prefix("0x")?;
        *number = u64::from_str_radix(digits, 16).ok()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        assert_eq!(Activity::parse(b"running\n"), Some(Activity::OnCpu));
        assert_eq!(
            Activity::parse(b"-1 0x7ffe30 0x401000\n"),
            Some(Activity::Faulting { stack_pointer: 0x7ffe30, program_counter: 0x40_1000 })
        );
        let line = b"202 0x55 0x80 0x2 0x0 0x0 0x0 0x7ffc10 0x7f01\n";
        let Some(Activity::Asleep(call)) = Activity::parse(line) else { panic!() };
        assert_eq!(call.number, 202);
        assert_eq!(call.arguments, [0x55, 0x80, 2, 0, 0, 0]);
        assert_eq!((call.stack_pointer, call.program_counter), (0x7ffc10, 0x7f01));
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [&b""[..], b"sleeping", b"-1", b"202 0x1", b"x 0x1", b"202 1 2 3 4 5 6 7 8"] {
            assert_eq!(Activity::parse(line), None, "{line:?}");
        }
    }
}
