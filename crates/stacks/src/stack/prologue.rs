//! The first instructions of a function, which say how far its frame pointer is from its stack
//! pointer.

/// Bytes of a function that are looked at.
pub(super) const LENGTH: usize = 96;

/// Frame pointer less stack pointer while the function calls another. `None` if its first
/// instructions make no frame of a fixed size.
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

#[cfg(target_arch = "x86_64")]
struct Instruction {
    opcode: u8,
    two_bytes: bool,
    /// The operands have 64 bits.
    wide: bool,
    /// The byte that names operands.
    operands: u8,
    length: usize,
}

#[cfg(target_arch = "x86_64")]
impl Instruction {
    /// Decodes the instructions that compilers put among the first of a function.
    fn decode(bytes: &[u8]) -> Option<Instruction> {
        let is_prefix = |byte: &&u8| matches!(**byte, 0x64 | 0x66 | 0xf2 | 0xf3);
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
            (false, 0x50..=0x5f | 0x90 | 0x98 | 0x99 | 0xc3) => (false, 0),
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

    /// Whatever follows belongs to the function's body.
    fn ends(&self) -> bool {
        let calls = self.opcode == 0xff && matches!(self.operands >> 3 & 7, 2..=5);
        !self.two_bytes && (calls || matches!(self.opcode, 0xc3 | 0xe8 | 0xe9 | 0xeb))
    }

    fn moves_stack(&self) -> bool {
        let target = self.operands & 0xc7 == 0xc4;
        self.wide && !self.two_bytes && matches!(self.opcode, 0x81 | 0x83) && target
    }

    /// Bytes by which the stack grows; `None` if it shrinks.
    fn reserved(&self, bytes: &[u8]) -> Option<u64> {
        if !self.wide || self.two_bytes {
            return Some(0);
        }
        let byte = |at: usize| bytes.get(at).map(|&byte| i64::from(byte.cast_signed()));
        let word =
            |at: usize| Some(i64::from(i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)));
        let grows = match (self.opcode, self.operands) {
            (0x83, 0xec) => byte(3)?,
            (0x81, 0xec) => word(3)?,
            (0x83, 0xc4) => -byte(3)?,
            (0x81, 0xc4) => -word(3)?,
            (0x8d, 0x64) if bytes[3] == 0x24 => -byte(4)?,
            (0x8d, 0xa4) if bytes[3] == 0x24 => -word(4)?,
            _ => 0,
        };
        u64::try_from(grows).ok()
    }
}

/// Frame pointer less stack pointer while the function calls another.
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

    proptest! {
        #[test]
        fn hostile_code_is_survived(code in prop::collection::vec(any::<u8>(), 0..LENGTH)) {
            frame_pointer_distance(&code);
        }
    }
}
