//! Unwind rules, which lead from a frame to its caller. A rule is found by program counter.

use std::collections::HashMap;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, Evaluation, EvaluationResult, Expression, Operation, Reader,
    Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, Value,
};

use super::StackBytes;
use super::call::{CodePages, PrecedingCall};
use super::registers::{PROGRAM_COUNTER, Registers};
use crate::image::{AddressSpace, Bytes, CodeAddress, Image, ImageId, Images, Place};

/// Maximum number of files whose tables are kept open; each takes up to 256 KB.
const MAX_TABLES: usize = 64;
/// Maximum number of entries of a table that has no index: 4 MB.
const MAX_ENTRIES: usize = 1 << 18;
/// Maximum size of one function's unwind entry, in bytes; a larger size is taken for an error.
const MAX_FRAME_ENTRY: usize = 1 << 16;
/// Maximum number of steps of one DWARF expression; the longest seen, for `sigreturn`, has three.
const MAX_EXPRESSION: u32 = 64;
const CACHED: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) rule: Rule,
    /// The call before the address, if the address is a return address.
    pub(super) call: PrecedingCall,
}

#[derive(Clone, Debug)]
pub(super) enum Rule {
    /// The outermost frame, with which the thread started.
    Start,
    Function(Arc<Function>),
    /// No table covers the address.
    Unknown,
}

#[derive(Clone, Debug)]
pub(super) struct Function {
    /// Address of the function's first instruction, in the file.
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) cfa: Cfa,
    pub(super) saved: Box<[(u16, Saved)]>,
    /// DWARF column of the return address.
    pub(super) return_column: u16,
    /// True for a signal trampoline: the caller was interrupted and made no call.
    pub(super) signal: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Cfa {
    Register(u16, i64),
    /// A word on the stack, at an offset from a register; used by functions that align their
    /// stacks.
    Loaded(u16, i64),
    Expression(Program),
}

/// Location of the caller's value of a register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Saved {
    Lost,
    At(i64),
    Value(i64),
    InRegister(u16),
    /// At an offset from a register instead of from the CFA.
    AtRegister(u16, i64),
    AtExpression(Program),
    ValueExpression(Program),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    image: ImageId,
    expression: UnwindExpression<usize>,
    encoding: gimli::Encoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoValue {
    Needs(u16),
    Unreadable,
}

#[derive(Debug)]
pub(super) struct Rules {
    tables: HashMap<ImageId, Option<Tables>>,
    context: Box<UnwindContext<usize>>,
    cache: Box<[Option<Cached>]>,
    pub(super) code: CodePages,
    /// For a called and a running function: true if the called function may have jumped to the
    /// running one.
    pub(super) tail_calls: HashMap<(CodeAddress, CodeAddress), bool>,
}

#[derive(Debug)]
struct Cached {
    key: (CodeAddress, bool),
    site: Site,
}

#[derive(Debug)]
struct Tables {
    frames: EhFrame<Bytes>,
    bases: BaseAddresses,
    index: Index,
}

#[derive(Debug)]
enum Index {
    /// `.eh_frame_hdr`, which is sorted.
    Header(Bytes),
    /// Start address of each function and offset of its entry, in ascending order.
    Own(Vec<(u64, usize)>),
}

impl Rules {
    pub(super) fn new() -> Rules {
        Rules {
            tables: HashMap::new(),
            context: Box::new(UnwindContext::new()),
            cache: (0..CACHED).map(|_| None).collect(),
            code: CodePages::new(),
            tail_calls: HashMap::new(),
        }
    }

    /// Finds the rule for a program counter. `returns` must be true for a return address.
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
        let rule = rule.unwrap_or_else(|| match returns && self.ends_thread(image, code) {
            true => Rule::Start,
            false => Rule::Unknown,
        });
        let site = Site { rule, call };
        self.cache[slot] = Some(Cached { key, site: site.clone() });
        site
    }

    fn lookup(&mut self, image: &Arc<Image>, code: CodeAddress) -> Option<Rule> {
        if !self.tables.contains_key(&code.image) {
            if self.tables.len() >= MAX_TABLES {
                // Cached rules refer to these tables.
                self.tables.clear();
                self.cache.fill_with(|| None);
            }
            self.tables.insert(code.image, Tables::read(image));
        }
        let tables = self.tables.get(&code.image)?.as_ref()?;
        let frames = &tables.frames;
        let fde = tables.find(code.address)?;
        if fde.entry_len() > MAX_FRAME_ENTRY {
            return None;
        }
        let return_column = fde.cie().return_address_register().0;
        let encoding = fde.cie().encoding();
        let (start, length) = (fde.initial_address(), fde.len());
        let signal = fde.is_signal_trampoline();
        let row = fde
            .unwind_info_for_address(frames, &tables.bases, &mut self.context, code.address)
            .ok()?;
        if row.register(Register(return_column)) == Some(RegisterRule::Undefined) {
            return Some(Rule::Start);
        }
        let program = |expression| Program { image: code.image, expression, encoding };
        let cfa = match *row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Cfa::Register(register.0, offset),
            CfaRule::Expression(expression) => match simple(frames, expression, encoding) {
                Some((register, offset, true)) => Cfa::Loaded(register, offset),
                _ => Cfa::Expression(program(expression)),
            },
        };
        let mut saved = Vec::new();
        for (register, rule) in row.registers() {
            let rule = match *rule {
                RegisterRule::Undefined => Saved::Lost,
                RegisterRule::SameValue | RegisterRule::Constant(_) => continue,
                RegisterRule::Offset(offset) => Saved::At(offset),
                RegisterRule::ValOffset(offset) => Saved::Value(offset),
                RegisterRule::Register(register) => Saved::InRegister(register.0),
                RegisterRule::Expression(expression) => {
                    match simple(frames, expression, encoding) {
                        Some((register, offset, false)) => Saved::AtRegister(register, offset),
                        _ => Saved::AtExpression(program(expression)),
                    }
                }
                RegisterRule::ValExpression(expression) => {
                    Saved::ValueExpression(program(expression))
                }
                RegisterRule::Architectural => return None,
            };
            // Unwinding needs no vector registers.
            if register.0 <= PROGRAM_COUNTER {
                saved.push((register.0, rule));
            }
        }
        let saved = saved.into_boxed_slice();
        let function = Function { start, length, cfa, saved, return_column, signal };
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
        let expression: Expression<Bytes> =
            program.expression.get(&tables.frames).map_err(|_| NoValue::Unreadable)?;
        evaluate(expression.evaluation(program.encoding), initial, registers, stack)
    }
}

/// Decodes an expression that only adds a register and an offset and, perhaps, loads the word at
/// the sum. The third value is `true` if the expression loads.
fn simple(
    frames: &EhFrame<Bytes>,
    expression: UnwindExpression<usize>,
    encoding: gimli::Encoding,
) -> Option<(u16, i64, bool)> {
    let expression: Expression<Bytes> = expression.get(frames).ok()?;
    let mut operations = expression.operations(encoding);
    let Operation::RegisterOffset { register, offset, .. } = operations.next().ok()?? else {
        return None;
    };
    let loads = match operations.next().ok()? {
        None => return Some((register.0, offset, false)),
        Some(Operation::Deref { size: 8, space: false, .. }) => true,
        Some(_) => return None,
    };
    operations.next().ok()?.is_none().then_some((register.0, offset, loads))
}

fn evaluate(
    mut evaluation: Evaluation<Bytes>,
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
    fn read(image: &Arc<Image>) -> Option<Tables> {
        let tables = image.unwind_tables();
        let (address, frames) = tables.frames?;
        let mut bases = BaseAddresses::default().set_eh_frame(address);
        if let Some(text) = image.section(".text") {
            bases = bases.set_text(text.address);
        }
        if let Some((address, _)) = &tables.index {
            bases = bases.set_eh_frame_hdr(*address);
        }
        let mut frames = EhFrame::from(frames);
        frames.set_address_size(8);
        #[cfg(target_arch = "aarch64")]
        frames.set_vendor(gimli::Vendor::AArch64);
        let header = tables.index.map(|(_, bytes)| bytes);
        let index = match header.filter(has_table) {
            Some(bytes) => Index::Header(bytes),
            None => Index::Own(Tables::index(&frames, &bases)),
        };
        Some(Tables { frames, bases, index })
    }

    fn index(frames: &EhFrame<Bytes>, bases: &BaseAddresses) -> Vec<(u64, usize)> {
        let mut entries = frames.entries(bases);
        let mut index = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            if let Ok(fde) = partial.parse(EhFrame::cie_from_offset) {
                index.push((fde.initial_address(), fde.offset()));
            }
            if index.len() == MAX_ENTRIES {
                break;
            }
        }
        index.sort_unstable();
        index
    }

    fn find(&self, address: u64) -> Option<gimli::FrameDescriptionEntry<Bytes>> {
        let offset: usize = match &self.index {
            Index::Header(bytes) => {
                let entry = frame_entry(bytes, self.bases.eh_frame_hdr.section?, address)?;
                usize::try_from(entry.checked_sub(self.bases.eh_frame.section?)?).ok()?
            }
            Index::Own(index) => {
                let at = index.partition_point(|(start, _)| *start <= address);
                index.get(at.checked_sub(1)?)?.1
            }
        };
        let cie = EhFrame::cie_from_offset;
        let entry = self.frames.fde_from_offset(&self.bases, offset.into(), cie).ok()?;
        entry.contains(address).then_some(entry)
    }
}

/// Returns `true` if an `.eh_frame_hdr` has the form that every linker writes: version 1, a 4-byte
/// count, and a table of pairs of 4-byte numbers, which are relative to the section. Each pair
/// contains the address of a function and the address of the function's entry.
fn has_table(header: &Bytes) -> bool {
    let mut start = [0; TABLE_START];
    header.clone().read_slice(&mut start).is_ok() && start.starts_with(&[1, 0x1b, 0x03, 0x3b])
}

const TABLE_START: usize = 12;

/// Address of the entry for the last function that begins at or before an address.
fn frame_entry(header: &Bytes, base: u64, address: u64) -> Option<u64> {
    let value = |at: usize| {
        let mut reader = header.clone();
        reader.skip(at).ok()?;
        Some(base.wrapping_add_signed(reader.read_i32().ok()?.into()))
    };
    let mut reader = header.clone();
    reader.skip(8).ok()?;
    let count = (reader.read_u32().ok()? as usize).min(reader.len() / 8);
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = from + (to - from) / 2;
        match value(TABLE_START + 8 * middle)? <= address {
            true => from = middle + 1,
            false => to = middle,
        }
    }
    value(TABLE_START + 8 * from.checked_sub(1)? + 4)
}

fn slot((code, returns): (CodeAddress, bool)) -> usize {
    let mixed = (code.address ^ (code.image.index() as u64) << 40 ^ u64::from(returns) << 63)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 52) as usize % CACHED
}
