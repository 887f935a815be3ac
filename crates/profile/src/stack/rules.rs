//! Rules that lead from a frame to its caller, by program counter.

use std::collections::HashMap;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, Evaluation, EvaluationResult,
    Expression, LittleEndian, ParsedEhFrameHdr, Register, RegisterRule, UnwindContext,
    UnwindExpression, UnwindSection, Value,
};

use super::StackBytes;
use super::call::{CodePages, PrecedingCall};
use super::registers::{PROGRAM_COUNTER, Registers};
use crate::image::{AddressSpace, CodeAddress, Image, ImageId, Images, Place};

/// Larger tables are not read.
const MAX_TABLE: u64 = 64 << 20;
/// Tables of all files together.
const MAX_TABLES: u64 = 256 << 20;
/// A function with more unwind instructions is not believed.
const MAX_FRAME_ENTRY: usize = 1 << 16;
/// Steps of one DWARF expression; the longest seen, of `sigreturn`, has three.
const MAX_EXPRESSION: u32 = 64;
const CACHED: usize = 4096;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// How to get from a program counter to the caller.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) rule: Rule,
    /// The call before the address, if that is a return address.
    pub(super) call: PrecedingCall,
}

#[derive(Clone, Debug)]
pub(super) enum Rule {
    /// The thread starts here.
    Start,
    /// The tables know the function.
    Function(Arc<Function>),
    /// No table knows the address.
    Unknown,
}

#[derive(Clone, Debug)]
pub(super) struct Function {
    /// First address of the function, as the file counts.
    pub(super) start: u64,
    pub(super) cfa: Cfa,
    pub(super) saved: Box<[(u16, Saved)]>,
    /// Number of the column that has the return address.
    pub(super) return_column: u16,
    /// A signal handler returns here: its caller was interrupted, not calling.
    pub(super) signal: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Cfa {
    Register(u16, i64),
    Expression(Program),
}

/// Where the caller's value of a register is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Saved {
    Lost,
    At(i64),
    Value(i64),
    InRegister(u16),
    AtExpression(Program),
    ValueExpression(Program),
}

/// A DWARF expression in a file's frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    image: ImageId,
    expression: UnwindExpression<usize>,
    encoding: gimli::Encoding,
}

/// Reason why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoValue {
    Needs(u16),
    Unreadable,
}

/// Unwind tables of the files, and the rules used last.
#[derive(Debug)]
pub(super) struct Rules {
    tables: HashMap<ImageId, Option<Tables>>,
    bytes: u64,
    context: Box<UnwindContext<usize>>,
    cache: Box<[Option<Cached>]>,
    pub(super) code: CodePages,
}

#[derive(Debug)]
struct Cached {
    key: (CodeAddress, bool),
    site: Site,
}

#[derive(Debug)]
struct Tables {
    frames: Vec<u8>,
    bases: BaseAddresses,
    index: Index,
}

#[derive(Debug)]
enum Index {
    /// `.eh_frame_hdr`, which is sorted.
    Header(Vec<u8>),
    /// First address of each function, and where its entry is.
    Own(Vec<(u64, usize)>),
}

impl Rules {
    pub(super) fn new() -> Rules {
        Rules {
            tables: HashMap::new(),
            bytes: 0,
            context: Box::new(UnwindContext::new()),
            cache: (0..CACHED).map(|_| None).collect(),
            code: CodePages::new(),
        }
    }

    /// Looks up a program counter; `returns` says that it is a return address.
    pub(super) fn site(
        &mut self,
        space: &AddressSpace,
        images: &Images,
        address: u64,
        returns: bool,
    ) -> Site {
        let Place::Image(code) = space.place(address) else {
            let call = if returns {
                self.code.call_in_memory(space, address)
            } else {
                PrecedingCall::None
            };
            return Site { rule: Rule::Unknown, call };
        };
        let key = (code, returns);
        let slot = slot(key);
        if let Some(cached) = self.cache[slot].as_ref().filter(|cached| cached.key == key) {
            return cached.site.clone();
        }
        let Some(image) = images.get(code.image) else {
            return Site { rule: Rule::Unknown, call: PrecedingCall::None };
        };
        let call = match returns {
            true => self.code.call(image, code),
            false => PrecedingCall::None,
        };
        let lookup = code.address.wrapping_sub(returns.into());
        let rule = self.lookup(image, CodeAddress { address: lookup, ..code });
        let site = Site { rule: rule.unwrap_or(Rule::Unknown), call };
        self.cache[slot] = Some(Cached { key, site: site.clone() });
        site
    }

    fn lookup(&mut self, image: &Image, code: CodeAddress) -> Option<Rule> {
        if !self.tables.contains_key(&code.image) {
            let tables = Tables::read(image, MAX_TABLE.min(MAX_TABLES - self.bytes));
            self.bytes += tables.as_ref().map_or(0, |tables| tables.frames.len() as u64);
            self.tables.insert(code.image, tables);
        }
        let tables = self.tables.get(&code.image)?.as_ref()?;
        let frames = tables.frames();
        let fde = tables.find(&frames, code.address)?;
        if fde.entry_len() > MAX_FRAME_ENTRY {
            return None;
        }
        let return_column = fde.cie().return_address_register().0;
        let encoding = fde.cie().encoding();
        let start = fde.initial_address();
        let signal = fde.is_signal_trampoline();
        let row = fde
            .unwind_info_for_address(&frames, &tables.bases, &mut self.context, code.address)
            .ok()?;
        if row.register(Register(return_column)) == Some(RegisterRule::Undefined) {
            return Some(Rule::Start);
        }
        let program = |expression| Program { image: code.image, expression, encoding };
        let cfa = match *row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Cfa::Register(register.0, offset),
            CfaRule::Expression(expression) => Cfa::Expression(program(expression)),
        };
        let mut saved = Vec::new();
        for (register, rule) in row.registers() {
            let rule = match *rule {
                RegisterRule::Undefined => Saved::Lost,
                RegisterRule::SameValue | RegisterRule::Constant(_) => continue,
                RegisterRule::Offset(offset) => Saved::At(offset),
                RegisterRule::ValOffset(offset) => Saved::Value(offset),
                RegisterRule::Register(register) => Saved::InRegister(register.0),
                RegisterRule::Expression(expression) => Saved::AtExpression(program(expression)),
                RegisterRule::ValExpression(expression) => {
                    Saved::ValueExpression(program(expression))
                }
                RegisterRule::Architectural => return None,
            };
            // Vector registers are of no use here.
            if register.0 <= PROGRAM_COUNTER {
                saved.push((register.0, rule));
            }
        }
        let saved = saved.into_boxed_slice();
        let function = Function { start, cfa, saved, return_column, signal };
        Some(Rule::Function(Arc::new(function)))
    }

    pub(super) fn evaluate(
        &self,
        program: Program,
        initial: Option<u64>,
        registers: &Registers,
        stack: &StackBytes<'_>,
    ) -> Result<u64, NoValue> {
        let tables = self.tables.get(&program.image).and_then(Option::as_ref);
        let tables = tables.ok_or(NoValue::Unreadable)?;
        let expression: Expression<Slice<'_>> =
            program.expression.get(&tables.frames()).map_err(|_| NoValue::Unreadable)?;
        evaluate(expression.evaluation(program.encoding), initial, registers, stack)
    }
}

fn evaluate(
    mut evaluation: Evaluation<Slice<'_>>,
    initial: Option<u64>,
    registers: &Registers,
    stack: &StackBytes<'_>,
) -> Result<u64, NoValue> {
    evaluation.set_max_iterations(MAX_EXPRESSION);
    if let Some(value) = initial {
        evaluation.set_initial_value(value);
    }
    let mut result = evaluation.evaluate();
    loop {
        result = match result {
            Ok(EvaluationResult::Complete) => {
                let value = evaluation.value_result().and_then(|value| value.to_u64(!0).ok());
                if let Some(value) = value {
                    return Ok(value);
                }
                return match evaluation.as_result() {
                    [gimli::Piece { location: gimli::Location::Address { address }, .. }] => {
                        Ok(*address)
                    }
                    _ => Err(NoValue::Unreadable),
                };
            }
            Ok(EvaluationResult::RequiresRegister { register, .. }) => {
                let value = registers.get(register.0).ok_or(NoValue::Needs(register.0))?;
                evaluation.resume_with_register(Value::Generic(value))
            }
            Ok(EvaluationResult::RequiresMemory { address, size: 8, .. }) => {
                let value = stack.word(address).ok_or(NoValue::Unreadable)?;
                evaluation.resume_with_memory(Value::Generic(value))
            }
            _ => return Err(NoValue::Unreadable),
        };
    }
}

impl Tables {
    fn read(image: &Image, most: u64) -> Option<Tables> {
        let tables = image.unwind_tables(most);
        let (address, frames) = tables.frames?;
        let mut bases = BaseAddresses::default().set_eh_frame(address);
        if let Some(text) = image.section(".text") {
            bases = bases.set_text(text.address);
        }
        if let Some((address, _)) = &tables.index {
            bases = bases.set_eh_frame_hdr(*address);
        }
        let header = tables.index.map(|(_, bytes)| bytes);
        let index = match header.filter(|bytes| has_table(bytes, &bases)) {
            Some(bytes) => Index::Header(bytes),
            None => Index::Own(Tables::index(&frames, &bases)),
        };
        Some(Tables { frames, bases, index })
    }

    fn index(frames: &[u8], bases: &BaseAddresses) -> Vec<(u64, usize)> {
        let section = section(frames);
        let mut entries = section.entries(bases);
        let mut index = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            if let Ok(fde) = partial.parse(EhFrame::cie_from_offset) {
                index.push((fde.initial_address(), fde.offset()));
            }
        }
        index.sort_unstable();
        index
    }

    fn frames(&self) -> EhFrame<Slice<'_>> {
        section(&self.frames)
    }

    fn find<'a>(
        &'a self,
        frames: &EhFrame<Slice<'a>>,
        address: u64,
    ) -> Option<gimli::FrameDescriptionEntry<Slice<'a>>> {
        match &self.index {
            Index::Header(bytes) => {
                let header = parse_header(bytes, &self.bases)?;
                let table = header.table()?;
                table.fde_for_address(frames, &self.bases, address, EhFrame::cie_from_offset).ok()
            }
            Index::Own(index) => {
                let at = index.partition_point(|(start, _)| *start <= address);
                let (_, offset) = index.get(at.checked_sub(1)?)?;
                let fde = frames
                    .fde_from_offset(&self.bases, (*offset).into(), EhFrame::cie_from_offset)
                    .ok()?;
                fde.contains(address).then_some(fde)
            }
        }
    }
}

fn section(frames: &[u8]) -> EhFrame<Slice<'_>> {
    let mut section = EhFrame::new(frames, LittleEndian);
    section.set_address_size(8);
    #[cfg(target_arch = "aarch64")]
    section.set_vendor(gimli::Vendor::AArch64);
    section
}

fn parse_header<'a>(bytes: &'a [u8], bases: &BaseAddresses) -> Option<ParsedEhFrameHdr<Slice<'a>>> {
    EhFrameHdr::new(bytes, LittleEndian).parse(bases, 8).ok()
}

fn has_table(bytes: &[u8], bases: &BaseAddresses) -> bool {
    parse_header(bytes, bases).is_some_and(|header| header.table().is_some())
}

fn slot((code, returns): (CodeAddress, bool)) -> usize {
    let mixed = (code.address ^ (code.image.index() as u64) << 40 ^ u64::from(returns) << 63)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 52) as usize % CACHED
}
