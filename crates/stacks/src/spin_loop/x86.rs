//! Decodes the few x86-64 instructions that occur in loops that only wait.
//!
//! Any other instruction ends the search, so a loop with an unknown instruction is never
//! recognised.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.

/// Register numbers in instructions: `rsp`, `rbp` and `rax`.
const STACK: u8 = 4;
const FRAME: u8 = 5;
const RAX: u8 = 0;

const MAX_LENGTH: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MemoryOperand {
    base: Option<u8>,
    index: Option<u8>,
    displacement: i64,
}

impl MemoryOperand {
    /// Treats every variable on the stack as local: no other thread changes it.
    fn is_local(self) -> bool {
        matches!(self.base, Some(STACK | FRAME))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operand {
    Register(u8),
    Memory(MemoryOperand),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Reads the operand into the register, or compares the operand, which sets only flags.
    Read(Operand, Option<u8>),
    /// Changes the operand by a constant (`add`, `sub`, `inc`, `dec`, `and`).
    Add(Operand),
    /// Sets the operand to a constant or to another register.
    Set(Operand),
    /// `lock cmpxchg`: stores a register if the memory equals `rax`.
    CompareExchange(MemoryOperand),
    /// `xchg`, which is atomic even without `lock`.
    Exchange(MemoryOperand, u8),
    Jump(i64),
    JumpIf(i64),
    Nothing,
}

#[derive(Clone, Copy, Debug)]
struct LoopInstruction {
    does: Does,
    end: usize,
}

struct Reader<'a> {
    code: &'a [u8],
    at: usize,
    /// Lower four bits of the REX prefix, which extend the register fields.
    rex: u8,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.code.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self, bytes: usize) -> Option<i64> {
        let end = self.at + bytes;
        let number = match *self.code.get(self.at..end)? {
            [one] => i64::from(one as i8),
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            _ => return None,
        };
        self.at = end;
        Some(number)
    }

    /// The register field and the other operand of an instruction that ends with `immediate` bytes
    /// of immediate data.
    fn operands(&mut self, immediate: usize) -> Option<(u8, Operand)> {
        let modes = self.byte()?;
        let extended = |register: u8, bit: u8| register + 8 * (self.rex >> bit & 1);
        let (mode, low) = (modes >> 6, modes & 7);
        let register = extended(modes >> 3 & 7, 2);
        if mode == 3 {
            return Some((register, Operand::Register(extended(low, 0))));
        }
        let (mut base, mut index) = (Some(extended(low, 0)), None);
        let mut relative = mode == 0 && low == 5;
        if low == 4 {
            let rex = self.rex;
            let sum = self.byte()?;
            let part = sum >> 3 & 7;
            index = (part != 4 || rex & 2 != 0).then_some(part + 8 * (rex >> 1 & 1));
            base = Some((sum & 7) + 8 * (rex & 1));
            relative = false;
            if mode == 0 && sum & 7 == 5 {
                let displacement = self.number(4)?;
                return Some((
                    register,
                    Operand::Memory(MemoryOperand { base: None, index, displacement }),
                ));
            }
        }
        let mut displacement = match mode {
            0 if !relative => 0,
            1 => self.number(1)?,
            _ => self.number(4)?,
        };
        if relative {
            // The address is relative to the end of the instruction.
            base = None;
            displacement += (self.at + immediate) as i64;
        }
        Some((register, Operand::Memory(MemoryOperand { base, index, displacement })))
    }
}

fn decode(code: &[u8], at: usize) -> Option<LoopInstruction> {
    let mut reader = Reader { code, at, rex: 0 };
    let mut locked = false;
    let mut opcode = reader.byte()?;
    let mut wide = 4;
    while matches!(opcode, 0x66 | 0xf0) {
        (locked, wide) = (locked || opcode == 0xf0, if opcode == 0x66 { 2 } else { wide });
        opcode = reader.byte()?;
    }
    if opcode & 0xf0 == 0x40 {
        reader.rex = opcode & 0x0f;
        opcode = reader.byte()?;
    }
    let does = match opcode {
        0x0f => two_bytes(&mut reader, locked)?,
        _ if locked => return None,
        0x38..=0x3b | 0x84 | 0x85 => {
            let (_, operand) = reader.operands(0)?;
            Does::Read(operand, None)
        }
        0x8a | 0x8b => match reader.operands(0)? {
            (register, Operand::Register(_)) => Does::Set(Operand::Register(register)),
            (register, from) => Does::Read(from, Some(register)),
        },
        0x88 | 0x89 | 0x31 | 0x33 => match reader.operands(0)? {
            // `xor` sets a register to a constant only if both operands are the same register.
            (register, Operand::Register(other)) if opcode >= 0x88 || register == other => {
                Does::Set(Operand::Register(other))
            }
            _ => return None,
        },
        0x86 | 0x87 => match reader.operands(0)? {
            (register, Operand::Memory(memory)) => Does::Exchange(memory, register),
            _ => return None,
        },
        0x80 | 0x83 | 0x81 if opcode != 0x81 || wide == 4 => {
            let bytes = if opcode == 0x81 { 4 } else { 1 };
            let (operation, operand) = reader.operands(bytes)?;
            reader.number(bytes)?;
            match operation & 7 {
                0 | 5 => Does::Add(operand),
                7 => Does::Read(operand, None),
                4 => match operand {
                    Operand::Register(_) => Does::Add(operand),
                    Operand::Memory(_) => return None,
                },
                _ => return None,
            }
        }
        0xf6 | 0xf7 if opcode == 0xf6 || wide == 4 => {
            let bytes = if opcode == 0xf7 { 4 } else { 1 };
            let (operation, operand) = reader.operands(bytes)?;
            reader.number(bytes)?;
            (operation & 7 == 0).then_some(Does::Read(operand, None))?
        }
        0xfe | 0xff => {
            let (operation, operand) = reader.operands(0)?;
            (operation & 7 <= 1).then_some(Does::Add(operand))?
        }
        0xc6 | 0xc7 if opcode == 0xc6 || wide == 4 => {
            let bytes = if opcode == 0xc7 { 4 } else { 1 };
            let (_, operand) = reader.operands(bytes)?;
            reader.number(bytes)?;
            Does::Set(operand)
        }
        0x3c | 0xa8 => {
            reader.number(1)?;
            Does::Read(Operand::Register(RAX), None)
        }
        0x3d | 0xa9 if wide == 4 => {
            reader.number(4)?;
            Does::Read(Operand::Register(RAX), None)
        }
        0xb0..=0xb7 => {
            reader.number(1)?;
            Does::Set(Operand::Register(opcode - 0xb0 + 8 * (reader.rex & 1)))
        }
        0xb8..=0xbf if wide == 4 && reader.rex & 8 == 0 => {
            reader.number(4)?;
            Does::Set(Operand::Register(opcode - 0xb8 + 8 * (reader.rex & 1)))
        }
        0x70..=0x7f => Does::JumpIf(reader.number(1)?),
        0xeb => Does::Jump(reader.number(1)?),
        0xe9 => Does::Jump(reader.number(4)?),
        0x90 => Does::Nothing,
        _ => return None,
    };
    Some(LoopInstruction { does, end: reader.at })
}

fn two_bytes(reader: &mut Reader<'_>, locked: bool) -> Option<Does> {
    let opcode = reader.byte()?;
    Some(match opcode {
        0xb0 | 0xb1 if locked => match reader.operands(0)? {
            (_, Operand::Memory(memory)) => Does::CompareExchange(memory),
            _ => return None,
        },
        _ if locked => return None,
        0x1f => {
            reader.operands(0)?;
            Does::Nothing
        }
        0xb6 | 0xb7 | 0xbe | 0xbf => match reader.operands(0)? {
            (register, Operand::Register(_)) => Does::Set(Operand::Register(register)),
            (register, from) => Does::Read(from, Some(register)),
        },
        0x80..=0x8f => Does::JumpIf(reader.number(4)?),
        _ => return None,
    })
}

/// Returns `true` if the instruction at `at` belongs to a loop that waits for another thread: the
/// loop reads one word again and again, or exchanges the word for a constant.
pub(super) fn only_waits(code: &[u8], at: usize) -> bool {
    let begins = |from: usize| {
        let jump = decode(code, from)?;
        let (Does::Jump(by) | Does::JumpIf(by)) = jump.does else { return None };
        let to = usize::try_from(jump.end as i64 + by).ok()?;
        (by < 0 && to <= at).then_some(to)
    };
    let mut path = Vec::with_capacity(MAX_LENGTH);
    (0..code.len()).filter_map(begins).any(|begin| leads_back(code, begin, begin, at, &mut path))
}

/// Returns `true` if a path from `from` to the loop's beginning contains the instruction at `at`
/// and only waits.
fn leads_back(
    code: &[u8],
    begin: usize,
    from: usize,
    at: usize,
    path: &mut Vec<(usize, Does)>,
) -> bool {
    if from == begin && !path.is_empty() {
        return path.iter().any(|&(place, _)| place == at) && waits(path);
    }
    if path.len() >= MAX_LENGTH {
        return false;
    }
    let Some(LoopInstruction { does, end }) = decode(code, from) else { return false };
    path.push((from, does));
    let to = |by: i64| usize::try_from(end as i64 + by).ok().filter(|&to| to >= begin);
    let found = match does {
        Does::Jump(by) => to(by).is_some_and(|to| leads_back(code, begin, to, at, path)),
        Does::JumpIf(by) => {
            leads_back(code, begin, end, at, path)
                || to(by).is_some_and(|to| leads_back(code, begin, to, at, path))
        }
        _ => leads_back(code, begin, end, at, path),
    };
    path.pop();
    found
}

/// Returns `true` if the loop can end only after another thread changes a word.
fn waits(path: &[(usize, Does)]) -> bool {
    let all = || path.iter().map(|&(_, does)| does);
    let changes = |register: u8| {
        all().any(|does| match does {
            Does::Read(_, into) => into == Some(register),
            Does::Add(operand) | Does::Set(operand) => operand == Operand::Register(register),
            Does::Exchange(_, into) => into == register,
            Does::CompareExchange(_) => register == RAX,
            _ => false,
        })
    };
    let writes = |memory: MemoryOperand| {
        let operand = Operand::Memory(memory);
        all().any(|does| does == Does::Add(operand) || does == Does::Set(operand))
    };
    // Each pass must use the same word, and the loop must neither add to the word nor set it.
    let same = |memory: MemoryOperand| {
        let moves = [memory.base, memory.index].into_iter().flatten().any(changes);
        !moves && !memory.is_local() && !writes(memory)
    };
    let exchanges = all().any(|does| matches!(does, Does::CompareExchange(_)));
    let adds = all().any(|does| matches!(does, Does::Add(Operand::Register(_))));
    let constant = all().any(|does| does == Does::Set(Operand::Register(RAX)));
    all().any(|does| match does {
        Does::CompareExchange(memory) => constant && same(memory),
        Does::Exchange(memory, _) => same(memory),
        // A loop that reads, adds and exchanges updates a counter; such a loop does not wait.
        Does::Read(Operand::Memory(memory), _) => same(memory) && !(exchanges && adds),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_wait(code: &[u8], instructions: &[usize]) -> bool {
        instructions.iter().all(|&at| only_waits(code, at))
    }

    #[test]
    fn a_loop_that_exchanges_a_constant_waits() {
        // `xor %eax,%eax; movb $0,0xf(%rsp); lock cmpxchg %dl,busy(%rip); jne` to the beginning.
        let code = [
            0x31, 0xc0, 0xc6, 0x44, 0x24, 0x0f, 0, 0xf0, 0x0f, 0xb0, 0x15, 0x78, 0x2b, 0, 0, 0x75,
            0xef,
        ];
        assert!(all_wait(&code, &[0, 2, 7, 15]));
        // A counter: `mov %eax,%edx; add $1,%edx; lock cmpxchg %edx,(%rdi); jne`.
        let code = [0x89, 0xc2, 0x83, 0xc2, 1, 0xf0, 0x0f, 0xb1, 0x17, 0x75, 0xf5];
        assert!(!only_waits(&code, 5) && !only_waits(&code, 0));
        // `mov (%rdi),%eax; lea 1(%rax),%edx; lock cmpxchg %edx,(%rdi); jne`.
        let code = [0x8b, 7, 0x8d, 0x50, 1, 0xf0, 0x0f, 0xb1, 0x17, 0x75, 0xf5];
        assert!(!only_waits(&code, 5));
    }

    #[test]
    fn a_loop_that_reads_the_same_word_waits() {
        // `mov flag(%rip),%eax; test %eax,%eax; jne` to the beginning.
        assert!(all_wait(&[0x8b, 5, 1, 2, 0, 0, 0x85, 0xc0, 0x75, 0xf6], &[0, 6, 8]));
        // `cmpl $0,(%rdi); je` to the beginning.
        assert!(all_wait(&[0x83, 0x3f, 0, 0x74, 0xfb], &[0, 3]));
        // A seqlock reader; the code that counts its retries is out of line.
        let reader = [
            0x8b, 0x05, 0x4a, 0x2f, 0, 0, 0xa8, 1, 0x75, 0x13, 0x8b, 0x15, 0x40, 0x2f, 0, 0, 0x39,
            0xd0, 0x75, 0xec, 0x48, 0x83, 5, 0x1c, 0x2d, 0, 0, 1, 0xc3, 0x48, 0x83, 5, 0x0b, 0x2d,
            0, 0, 1, 0xeb, 0xd9,
        ];
        assert!(all_wait(&reader, &[0, 6, 8, 29, 37]));
        assert!(!only_waits(&reader, 20));
    }

    #[test]
    fn loops_that_get_on_do_not_wait() {
        for (name, code) in [
            // `mov (%rax),%rax; test %rax,%rax; jne`.
            ("list", &[0x48, 0x8b, 0, 0x48, 0x85, 0xc0, 0x75, 0xf8][..]),
            // `add $1,%rcx; cmpb $0,(%rax,%rcx); jne`.
            ("string", &[0x48, 0x83, 0xc1, 1, 0x80, 0x3c, 8, 0, 0x75, 0xf6]),
            // `addl $1,-4(%rbp); cmpl $9,-4(%rbp); jle`.
            ("local counter", &[0x83, 0x45, 0xfc, 1, 0x83, 0x7d, 0xfc, 9, 0x7e, 0xf6]),
            // `addl $1,(%rdi); cmpl $9,(%rdi); jle`.
            ("counter", &[0x83, 7, 1, 0x83, 0x3f, 9, 0x7e, 0xf8]),
            // `dec %ecx; jne`.
            ("delay", &[0xff, 0xc9, 0x75, 0xfc]),
            // `lock incl (%rdi); dec %ecx; jne`.
            ("increments", &[0xf0, 0xff, 7, 0xff, 0xc9, 0x75, 0xf9]),
        ] {
            let found = (0..code.len()).find(|&at| only_waits(code, at));
            assert_eq!(found, None, "{name}");
        }
    }
}
