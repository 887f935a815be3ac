//! Decodes the first instructions of a function, which show the distance between its frame pointer
//! and its stack pointer.

/// Number of bytes of a function that are decoded.
pub(super) const LENGTH: usize = 96;

/// Distance from stack pointer to frame pointer while the function calls another. `None` if its
/// first instructions do not create a frame of fixed size.
#[cfg(target_arch = "x86_64")]
pub(super) fn frame_pointer_distance(code: &[u8]) -> Option<u64> {
    const PROBE: [u8; 5] = [0x48, 0x83, 0x0c, 0x24, 0];
    let mut rest = code;
    let mut framed = false;
    let mut pushed = 0;
    let mut reserved = 0;
    loop {
        let instruction = Instruction::decode(rest)?;
        let bytes = rest.get(..instruction.length)?;
        rest = &rest[instruction.length..];
        match (instruction.wide, instruction.opcode) {
            _ if reserved > 0 && bytes != PROBE && !instruction.moves_stack() => break,
            (true, 0x89) if bytes[2] == 0xe5 => framed = true,
            (true, 0x8b) if bytes[2] == 0xec => framed = true,
            (_, 0x50..=0x57) if framed => pushed += 8,
            _ if instruction.ends() => break,
            // and %rsp; sub %rax, %rsp
            (true, 0x81 | 0x83) if bytes[2] == 0xe4 => return None,
            (true, 0x29) if bytes[2] & 0xc7 == 0xc4 => return None,
            _ if framed => reserved += instruction.reserved(bytes)?,
            _ => {}
        }
    }
    framed.then_some(pushed + reserved)
}

/// The frame of a function without unwind table, at one of its instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BareFrame {
    /// Distance from the stack pointer to the return address.
    pub(super) size: u64,
    /// Distance from the caller's saved frame pointer to the return address; `None` if it was not
    /// saved.
    pub(super) frame_pointer: Option<u64>,
}

#[cfg(target_arch = "x86_64")]
const MAX_STEPS: usize = 2048;

/// Frame of a function at the instruction `wanted` bytes from the function's beginning, found by
/// following its instructions. `None` if no path of supported instructions leads there.
#[cfg(target_arch = "x86_64")]
pub(super) fn frame_at(code: &[u8], wanted: usize) -> Option<BareFrame> {
    let mut seen = std::collections::HashSet::new();
    let mut ways = vec![(0, BareFrame::default())];
    while let Some((mut at, mut frame)) = ways.pop() {
        while at != wanted {
            if seen.len() >= MAX_STEPS || !seen.insert(at) {
                break;
            }
            let Some(instruction) = code.get(at..).and_then(Instruction::decode) else { break };
            let next = at + instruction.length;
            let Some(bytes) = code.get(at..next) else { break };
            if let Some(target) = instruction.target(bytes, next)
                && target < code.len()
            {
                ways.push((target, frame));
            }
            let goes_on = instruction.goes_on() && instruction.moves(bytes, &mut frame);
            if !goes_on {
                break;
            }
            at = next;
        }
        if at == wanted {
            return Some(frame);
        }
    }
    None
}

/// Not implemented: on AArch64, a function begins with its return address in a register.
#[cfg(target_arch = "aarch64")]
pub(super) fn frame_at(_: &[u8], _: usize) -> Option<BareFrame> {
    None
}

#[cfg(target_arch = "x86_64")]
struct Instruction {
    opcode: u8,
    two_bytes: bool,
    /// True if the operands have 64 bits.
    wide: bool,
    /// The ModRM byte.
    operands: u8,
    length: usize,
}

#[cfg(target_arch = "x86_64")]
impl Instruction {
    /// Decodes an instruction, if it is of a kind that compilers use at the beginning of a
    /// function.
    fn decode(bytes: &[u8]) -> Option<Instruction> {
        let is_prefix = |byte: &&u8| matches!(**byte, 0x64 | 0x66 | 0xf0 | 0xf2 | 0xf3);
        let mut at = bytes.iter().take(4).take_while(is_prefix).count();
        let short = bytes[..at].contains(&0x66);
        let mut wide = false;
        if let Some(rex @ 0x40..=0x4f) = bytes.get(at) {
            wide = rex & 8 != 0;
            at += 1;
        }
        let mut opcode = *bytes.get(at)?;
        at += 1;
        let two_bytes = opcode == 0x0f;
        if two_bytes {
            opcode = *bytes.get(at)?;
            at += 1;
        }
        let word = if short { 2 } else { 4 };
        let operands = bytes.get(at).copied().unwrap_or(0);
        let (has_operands, immediate) = match (two_bytes, opcode) {
            (false, 0x50..=0x5f | 0x90 | 0x98 | 0x99 | 0xa4 | 0xa5 | 0xaa | 0xab | 0xc3) => {
                (false, 0)
            }
            (true, 0x05 | 0x0b | 0xc8..=0xcf) => (false, 0),
            (true, 0xa3 | 0xab | 0xb0 | 0xb1 | 0xb3 | 0xbb..=0xbd | 0xc0 | 0xc1) => (true, 0),
            (true, 0xa4 | 0xac | 0xba) => (true, 1),
            (false, 0x68) => (false, 4),
            (false, 0x6a) => (false, 1),
            (false, 0x24 | 0x3c | 0x70..=0x7f | 0xa8 | 0xb0..=0xb7 | 0xeb) => (false, 1),
            (false, 0x25 | 0x3d | 0xa9) => (false, word),
            (false, 0xe8 | 0xe9) => (false, 4),
            (false, 0xb8..=0xbf) => (false, if wide { 8 } else { word }),
            (false, 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 | 0x6b) => (true, 1),
            (false, 0x81 | 0xc7 | 0x69) => (true, word),
            (false, 0xf6) => (true, usize::from(operands >> 3 & 7 < 2)),
            (false, 0xf7) => (true, if operands >> 3 & 7 < 2 { word } else { 0 }),
            (false, 0x00..=0x3f) if opcode & 7 < 4 => (true, 0),
            (false, 0x63 | 0x84..=0x8d | 0xd0..=0xd3 | 0xfe | 0xff) => (true, 0),
            (true, 0x80..=0x8f) => (false, 4),
            (true, 0x70 | 0xc6) => (true, 1),
            (true, 0x10..=0x1f | 0x28..=0x2f | 0x40..=0x6f | 0x74..=0x7f) => (true, 0),
            (true, 0x90..=0x9f | 0xaf | 0xb6..=0xb7 | 0xbe..=0xbf | 0xd0..=0xff) => (true, 0),
            _ => return None,
        };
        let length = match has_operands {
            true => at + super::call::operand_length(bytes.get(at..).filter(|b| !b.is_empty())?),
            false => at,
        };
        let operands = if has_operands { operands } else { 0 };
        Some(Instruction { opcode, two_bytes, wide, operands, length: length + immediate })
    }

    /// Returns `true` if the instruction ends the prologue: a call, a jump or a return.
    fn ends(&self) -> bool {
        let calls = self.opcode == 0xff && matches!(self.operands >> 3 & 7, 2..=5);
        !self.two_bytes && (calls || matches!(self.opcode, 0xc3 | 0xe8 | 0xe9 | 0xeb))
    }

    fn goes_on(&self) -> bool {
        let jumps = self.opcode == 0xff && matches!(self.operands >> 3 & 7, 4 | 5);
        match self.two_bytes {
            true => self.opcode != 0x0b,
            false => !jumps && !matches!(self.opcode, 0xc3 | 0xe9 | 0xeb),
        }
    }

    /// Target of a jump within the function, as a distance from the function's beginning.
    fn target(&self, bytes: &[u8], next: usize) -> Option<usize> {
        let distance = match (self.two_bytes, self.opcode) {
            (false, 0x70..=0x7f | 0xeb) => i64::from(bytes.last()?.cast_signed()),
            (false, 0xe9) | (true, 0x80..=0x8f) => {
                i64::from(i32::from_le_bytes(*bytes.last_chunk()?))
            }
            _ => return None,
        };
        usize::try_from(i64::try_from(next).ok()?.checked_add(distance)?).ok()
    }

    /// Applies the instruction's effect to the frame. Returns `false` if the effect is unknown.
    fn moves(&self, bytes: &[u8], frame: &mut BareFrame) -> bool {
        let grown = match (self.two_bytes, self.opcode) {
            (false, 0x50..=0x57 | 0x68 | 0x6a) => 8,
            (false, 0x58..=0x5f) => -8,
            // After `and` or `mov` to `%rsp`, or `sub %rax, %rsp`, the size is unknown.
            (false, 0x81 | 0x83) if self.wide && self.operands == 0xe4 => return false,
            (false, 0x89) if self.wide && self.operands & 0xc7 == 0xc4 => return false,
            (false, 0x8b) if self.wide && self.operands & 0xf8 == 0xe0 => return false,
            (false, 0x29) if self.wide && self.operands & 0xc7 == 0xc4 => return false,
            _ => match self.grown(bytes) {
                Some(grown) => grown,
                None => return false,
            },
        };
        let Some(size) = frame.size.checked_add_signed(grown) else { return false };
        frame.size = size;
        match bytes {
            [0x55] => frame.frame_pointer = Some(size),
            [0x5d] => frame.frame_pointer = None,
            _ => {}
        }
        true
    }

    fn moves_stack(&self) -> bool {
        let target = self.operands & 0xc7 == 0xc4;
        self.wide && !self.two_bytes && matches!(self.opcode, 0x81 | 0x83) && target
    }

    /// Number of bytes by which the instruction grows the stack; `None` if it shrinks the stack.
    fn reserved(&self, bytes: &[u8]) -> Option<u64> {
        u64::try_from(self.grown(bytes)?).ok()
    }

    /// Number of bytes by which the instruction grows the stack by a constant; negative if it
    /// shrinks the stack.
    fn grown(&self, bytes: &[u8]) -> Option<i64> {
        if !self.wide || self.two_bytes {
            return Some(0);
        }
        let byte = |at: usize| bytes.get(at).map(|&byte| i64::from(byte.cast_signed()));
        let word =
            |at: usize| Some(i64::from(i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)));
        Some(match (self.opcode, self.operands) {
            (0x83, 0xec) => byte(3)?,
            (0x81, 0xec) => word(3)?,
            (0x83, 0xc4) => -byte(3)?,
            (0x81, 0xc4) => -word(3)?,
            (0x8d, 0x64) if bytes[3] == 0x24 => -byte(4)?,
            (0x8d, 0xa4) if bytes[3] == 0x24 => -word(4)?,
            _ => 0,
        })
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) fn frame_pointer_distance(code: &[u8]) -> Option<u64> {
    let mut distance = None;
    for bytes in code.chunks_exact(4) {
        let instruction = u32::from_le_bytes(*bytes.first_chunk()?);
        let immediate = u64::from(instruction >> 10 & 0xfff);
        match instruction & 0xffc0_03ff {
            // add x29, sp, #immediate
            0x9100_03fd => distance = Some(immediate),
            // sub sp, sp, #immediate
            0xd100_03ff => distance = distance.map(|distance| distance + immediate),
            _ if instruction >> 26 == 0b10_0101 => break,
            _ => {}
        }
    }
    distance
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_are_measured() {
        let cases: [(&[u8], Option<u64>); 6] = [
            // endbr64; push %rbp; mov %rsp, %rbp; sub $0x20, %rsp; call
            (
                &[
                    0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xe8,
                    0, 0, 0, 0,
                ],
                Some(0x20),
            ),
            // push %rbp; mov %edi, %eax; mov %rsp, %rbp; push %r12; push %rbx; sub $0x110, %rsp
            (
                &[
                    0x55, 0x89, 0xf8, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x53, 0x48, 0x81, 0xec, 0x10,
                    0x01, 0, 0, 0xc3,
                ],
                Some(0x120),
            ),
            // push %rbp; mov %rsp, %rbp; call
            (&[0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 0, 0, 0], Some(0)),
            // push %rbp; mov %rsp, %rbp; sub $0x1000, %rsp; orq $0, (%rsp); sub $8, %rsp; ret
            (
                &[
                    0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0x48, 0x83, 0x0c,
                    0x24, 0, 0x48, 0x83, 0xec, 8, 0xc3,
                ],
                Some(0x1008),
            ),
            // push %rbp; mov %rsp, %rbp; and $-32, %rsp
            (&[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0xc3], None),
            // sub $8, %rsp; call
            (&[0x48, 0x83, 0xec, 8, 0xe8, 0, 0, 0, 0], None),
        ];
        for (code, expected) in cases {
            assert_eq!(frame_pointer_distance(code), expected, "{code:x?}");
        }
    }

    #[test]
    fn frames_without_tables_are_measured() {
        let code = [
            0x83, 0xff, 0x03, // cmp $3, %edi
            0x74, 0x12, // je 23
            0x55, // push %rbp
            0x48, 0x83, 0xec, 0x10, // sub $0x10, %rsp
            0x6a, 0x00, // push $0
            0xe8, 0, 0, 0, 0,    // call
            0x5a, // pop %rdx
            0x48, 0x83, 0xc4, 0x10, // add $0x10, %rsp
            0xc3, // ret
            0x48, 0x89, 0xf8, // mov %rdi, %rax
            0x0f, 0x05, // syscall
            0x90,
        ];
        let called = BareFrame { size: 0x20, frame_pointer: Some(8) };
        assert_eq!(frame_at(&code, 17), Some(called));
        let leaf = BareFrame { size: 0, frame_pointer: None };
        assert_eq!(frame_at(&code, 28), Some(leaf));
        assert_eq!(frame_at(&code, 6), Some(BareFrame { size: 8, ..called }));
        assert_eq!(frame_at(&code, 9), None);
    }

    proptest! {
        #[test]
        fn hostile_code_is_survived(code in prop::collection::vec(any::<u8>(), 0..LENGTH)) {
            _ = frame_at(&code, code.len() / 2);
            frame_pointer_distance(&code);
        }
    }
}
