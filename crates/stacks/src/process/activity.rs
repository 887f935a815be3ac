//! A thread's activity at one instant, according to `/proc/PID/task/TID/syscall`.

/// A thread's activity at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// On a CPU, or waiting for one.
    OnCpu,
    /// Asleep in a system call.
    Asleep(SystemCall),
    /// Asleep outside any system call: in a page fault, or stopped.
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
    /// Number of the system call on this architecture.
    pub number: u32,
    /// Arguments, as they are in registers. Values beyond the call's own arguments mean nothing.
    pub arguments: [u64; 6],
    /// Stack pointer of the caller.
    pub stack_pointer: u64,
    /// Program counter of the caller, just after the instruction that entered the kernel.
    pub program_counter: u64,
}

impl Activity {
    /// Parses `/proc/PID/task/TID/syscall`; `None` if the kernel never writes such a line.
    pub fn parse(line: &[u8]) -> Option<Activity> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if line == b"running" {
            return Some(Activity::OnCpu);
        }
        if let Some(rest) = line.strip_prefix(b"-1") {
            let [stack_pointer, program_counter] = numbers(rest)?;
            return Some(Activity::Faulting { stack_pointer, program_counter });
        }
        let (number, rest) = decimal(line)?;
        let [arguments @ .., stack_pointer, program_counter] = numbers::<8>(rest)?;
        Some(Activity::Asleep(SystemCall { number, arguments, stack_pointer, program_counter }))
    }

    /// Stack pointer and program counter of a sleeping thread; `None` if the thread is not asleep.
    #[inline]
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

fn decimal(line: &[u8]) -> Option<(u32, &[u8])> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = line.split_at(digits);
    let add = |number: u32, &digit: &u8| number.checked_mul(10)?.checked_add((digit - b'0').into());
    let number = digits.iter().try_fold(0, add)?;
    (!digits.is_empty()).then_some((number, rest))
}

/// Parses numbers such as ` 0x0 0x7f01`. Hand-written for speed: every sample calls this.
fn numbers<const N: usize>(mut line: &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        line = line.strip_prefix(b" 0x")?;
        let mut digits = 0;
        for &byte in line {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => break,
            };
            *number = *number << 4 | u64::from(digit);
            digits += 1;
        }
        if !(1..=16).contains(&digits) {
            return None;
        }
        line = &line[digits..];
    }
    line.is_empty().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        for line in [
            "",
            "sleeping",
            "-1",
            "-1 0x1",
            "202 0x1",
            "x 0x1",
            "202 1 2 3 4 5 6 7 8",
            " 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8",
            "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9",
            "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x",
            "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x10000000000000000",
            "4294967296 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8",
        ] {
            assert_eq!(Activity::parse(line.as_bytes()), None, "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Activity::parse(&line);
        }

        #[test]
        fn any_call_is_read(number: u32, arguments: [u64; 6], stack_pointer: u64, counter: u64) {
            let mut line = number.to_string();
            for value in arguments.iter().chain([&stack_pointer, &counter]) {
                line += &format!(" {value:#x}");
            }
            let call = SystemCall { number, arguments, stack_pointer, program_counter: counter };
            prop_assert_eq!(Activity::parse(line.as_bytes()), Some(Activity::Asleep(call)));
        }
    }
}
