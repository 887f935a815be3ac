//! Finds static variables by their types, or by the types of their members, in DWARF.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, Dwarf, Operation, Reader, Unit,
    UnitOffset,
};

use super::inlined::read_dwarf;
use crate::image::{Bytes, Image, Section};

const MAX_FOUND: usize = 10_000;
const MAX_DEPTH: usize = 12;
const MAX_ELEMENTS: u64 = 64;
const MAX_TYPES: usize = 1 << 20;
/// Maximum size of a unit, in bytes; a search of larger units takes too long.
const MAX_UNIT: usize = 8 << 20;

/// Selects types by path: returns a kind for a wanted type, and `None` for any other. A path
/// consists of the namespaces and types around a type and its name with generic arguments. For a
/// typedef, the path is the name alone.
pub type Wanted<K> = fn(&str) -> Option<K>;

/// A static variable, or a part of one, that has a wanted type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StaticVariable<K> {
    /// Name of the variable, followed by the path to the part within it.
    pub name: String,
    /// Virtual address in the file.
    pub address: u64,
    /// Kind that [`Wanted`] returned for the type.
    pub kind: K,
}

/// Iterates over the static variables of wanted types in a file. Each item is one compilation unit,
/// so that the caller can stop early.
///
/// LLVM lists variables as well as code in `.debug_aranges`. Units with listed variables come
/// first; units for which LLVM lists only code are skipped.
#[derive(Debug)]
pub struct StaticVariables<K> {
    wanted: Wanted<K>,
    dwarf: Dwarf<Bytes>,
    /// Units still to be searched, in reverse order.
    pending: Vec<usize>,
    /// Units for which `.debug_aranges` lists code but no variables.
    only_code: BTreeSet<usize>,
    found: usize,
}

impl<K: Copy> StaticVariables<K> {
    pub(super) fn of(image: &Arc<Image>, wanted: Wanted<K>) -> Option<StaticVariables<K>> {
        let dwarf = read_dwarf(image)?;
        let variable: Vec<&Section> =
            image.sections().iter().filter(|section| section.is_variable()).collect();
        let in_variables = |address: u64| {
            variable.iter().any(|section| address.wrapping_sub(section.address) < section.size)
        };
        let (mut first, mut only_code) = (BTreeSet::new(), BTreeSet::new());
        let mut headers = dwarf.debug_aranges.headers();
        while let Ok(Some(header)) = headers.next() {
            let unit = header.debug_info_offset().0;
            only_code.insert(unit);
            let mut entries = header.entries();
            while let Some(entry) = entries.next().transpose() {
                if entry.is_ok_and(|entry| in_variables(entry.address())) {
                    first.insert(unit);
                    break;
                }
            }
        }
        let mut pending = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let offset = header.debug_info_offset().map(|DebugInfoOffset(offset)| offset);
            pending.extend(offset.filter(|offset| !first.contains(offset)));
        }
        pending.reverse();
        pending.extend(first.iter().rev());
        only_code.retain(|unit| !first.contains(unit));
        Some(StaticVariables { wanted, dwarf, pending, only_code, found: 0 })
    }

    fn find_in(&self, offset: usize) -> Option<Vec<StaticVariable<K>>> {
        let header = self.dwarf.unit_header(DebugInfoOffset(offset)).ok()?;
        if header.length_including_self() > MAX_UNIT {
            return None;
        }
        let unit = self.dwarf.unit(header).ok()?;
        if self.only_code.contains(&offset) && lists_variables(&self.dwarf, &unit) {
            return None;
        }
        let mut search = Search {
            wanted: self.wanted,
            dwarf: &self.dwarf,
            unit: &unit,
            types: HashMap::new(),
            found: Vec::new(),
        };
        // If an entry is malformed, no variables are found in this unit.
        let _ = search.unit();
        Some(search.found)
    }
}

impl<K: Copy> Iterator for StaticVariables<K> {
    type Item = Vec<StaticVariable<K>>;

    fn next(&mut self) -> Option<Vec<StaticVariable<K>>> {
        let offset = self.pending.pop().filter(|_| self.found < MAX_FOUND)?;
        let mut found = self.find_in(offset).unwrap_or_default();
        found.truncate(MAX_FOUND - self.found);
        self.found += found.len();
        Some(found)
    }
}

/// Returns `true` if the compiler lists variables in `.debug_aranges`.
fn lists_variables(dwarf: &Dwarf<Bytes>, unit: &Unit<Bytes>) -> bool {
    let producer = || {
        let mut entries = unit.entries();
        let value = entries.next_dfs().ok()??.attr_value(gimli::DW_AT_producer)?;
        Some(dwarf.attr_string(unit, value).ok()?.to_slice().ok()?.into_owned())
    };
    let mentions = |text: &[u8], name: &[u8]| text.windows(name.len()).any(|at| at == name);
    producer().is_some_and(|text| mentions(&text, b"LLVM") || mentions(&text, b"clang"))
}

type Entry = DebuggingInformationEntry<Bytes>;

struct Search<'a, K> {
    wanted: Wanted<K>,
    dwarf: &'a Dwarf<Bytes>,
    unit: &'a Unit<Bytes>,
    /// For each type, its parts that have a wanted type.
    types: HashMap<UnitOffset, Vec<Part<K>>>,
    found: Vec<StaticVariable<K>>,
}

#[derive(Clone, Debug)]
struct Part<K> {
    at: u64,
    path: String,
    kind: K,
}

impl<K> Part<K> {
    fn whole(kind: K) -> Self {
        Part { at: 0, path: String::new(), kind }
    }
}

struct DebugVariable {
    name: String,
    address: u64,
    kind: UnitOffset,
}

impl<K: Copy> Search<'_, K> {
    fn unit(&mut self) -> gimli::Result<()> {
        // Depths and names of the enclosing entries, outermost first.
        let mut scopes: Vec<(isize, String)> = Vec::new();
        let mut variables = Vec::new();
        let mut entries = self.unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let depth = entry.depth();
            while scopes.last().is_some_and(|(around, _)| *around >= depth) {
                scopes.pop();
            }
            match entry.tag() {
                gimli::DW_TAG_namespace => {
                    scopes.push((depth, self.name(entry).unwrap_or_default()));
                }
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
                    let name = self.name(entry).unwrap_or_default();
                    if let Some(kind) = (self.wanted)(&path(&scopes, &name))
                        && self.types.len() < MAX_TYPES
                    {
                        self.types.insert(entry.offset(), vec![Part::whole(kind)]);
                    }
                    scopes.push((depth, name));
                }
                gimli::DW_TAG_variable => variables.extend(self.variable(entry, &scopes)),
                _ => {}
            }
        }
        for variable in variables {
            for part in self.parts(variable.kind, 0) {
                if self.found.len() == MAX_FOUND {
                    return Ok(());
                }
                let dot = if part.path.is_empty() { "" } else { "." };
                self.found.push(StaticVariable {
                    name: format!("{}{dot}{}", variable.name, part.path),
                    address: variable.address.wrapping_add(part.at),
                    kind: part.kind,
                });
            }
        }
        Ok(())
    }

    /// Returns `None` for a variable without a fixed address.
    fn variable(&self, entry: &Entry, scopes: &[(isize, String)]) -> Option<DebugVariable> {
        let AttributeValue::Exprloc(location) = entry.attr_value(gimli::DW_AT_location)? else {
            return None;
        };
        let mut operations = location.operations(self.unit.encoding());
        let address = match operations.next().ok()?? {
            Operation::Address { address } => address,
            Operation::AddressIndex { index } => self.dwarf.address(self.unit, index).ok()?,
            _ => return None,
        };
        let constant = operations.next().ok()?.is_none();
        let declared = match entry.attr_value(gimli::DW_AT_specification) {
            Some(AttributeValue::UnitRef(offset)) => Some(self.entry(offset)?),
            _ => None,
        };
        let declaration = declared.as_ref().unwrap_or(entry);
        let kind = type_of(declaration).or_else(|| type_of(entry))?;
        let name = self.name(declaration).or_else(|| self.name(entry))?;
        let name = path(scopes, &name);
        (constant && address != 0).then_some(DebugVariable { name, address, kind })
    }

    fn parts(&mut self, offset: UnitOffset, depth: usize) -> Vec<Part<K>> {
        if let Some(known) = self.types.get(&offset) {
            return known.clone();
        }
        if depth == MAX_DEPTH || self.types.len() >= MAX_TYPES {
            return Vec::new();
        }
        let mut parts = self.look_into(offset, depth).unwrap_or_default();
        parts.truncate(MAX_ELEMENTS as usize);
        self.types.insert(offset, parts.clone());
        parts
    }

    fn look_into(&mut self, offset: UnitOffset, depth: usize) -> Option<Vec<Part<K>>> {
        let entry = self.entry(offset)?;
        match entry.tag() {
            gimli::DW_TAG_typedef => {
                let name = self.name(&entry)?;
                match (self.wanted)(&name) {
                    Some(kind) => Some(vec![Part::whole(kind)]),
                    None => Some(self.parts(type_of(&entry)?, depth + 1)),
                }
            }
            gimli::DW_TAG_const_type | gimli::DW_TAG_volatile_type | gimli::DW_TAG_atomic_type => {
                Some(self.parts(type_of(&entry)?, depth + 1))
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                self.members(offset, depth)
            }
            gimli::DW_TAG_array_type => self.elements(offset, type_of(&entry)?, depth),
            _ => None,
        }
    }

    fn members(&mut self, offset: UnitOffset, depth: usize) -> Option<Vec<Part<K>>> {
        let mut members = Vec::new();
        self.children(offset, |search, entry| {
            if matches!(entry.tag(), gimli::DW_TAG_member | gimli::DW_TAG_inheritance)
                && let Some(kind) = type_of(entry)
            {
                let at = entry.attr_value(gimli::DW_AT_data_member_location);
                let at = at.and_then(|value| value.udata_value()).unwrap_or(0);
                members.push((at, search.name(entry).unwrap_or_default(), kind));
            }
        })?;
        let mut parts: Vec<Part<K>> = Vec::new();
        for (at, name, kind) in members {
            for part in self.parts(kind, depth + 1) {
                let at = at.checked_add(part.at)?;
                let names = [name.as_str(), &part.path].into_iter().filter(|name| !name.is_empty());
                let path = names.collect::<Vec<_>>().join(".");
                if !parts.iter().any(|other| other.at == at) && parts.len() < 64 {
                    parts.push(Part { at, path, kind: part.kind });
                }
            }
        }
        Some(parts)
    }

    fn elements(
        &mut self,
        offset: UnitOffset,
        kind: UnitOffset,
        depth: usize,
    ) -> Option<Vec<Part<K>>> {
        let each = self.parts(kind, depth + 1);
        if each.is_empty() {
            return Some(each);
        }
        let size = self.size(kind, 0)?;
        let mut count = None;
        self.children(offset, |_, entry| {
            let value = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let bound = value(gimli::DW_AT_upper_bound).and_then(|last| last.checked_add(1));
            count = count.or(value(gimli::DW_AT_count)).or(bound);
        })?;
        let mut parts = Vec::new();
        for index in 0..count?.min(MAX_ELEMENTS) {
            for part in &each {
                let at = index.checked_mul(size)?.checked_add(part.at)?;
                let path = format!("[{index}].{}", part.path);
                let path = path.trim_end_matches('.').to_owned();
                parts.push(Part { at, path, kind: part.kind });
            }
        }
        Some(parts)
    }

    fn size(&self, offset: UnitOffset, depth: usize) -> Option<u64> {
        let entry = self.entry(offset)?;
        match entry.attr_value(gimli::DW_AT_byte_size).and_then(|value| value.udata_value()) {
            Some(size) => Some(size),
            None if depth < MAX_DEPTH => self.size(type_of(&entry)?, depth + 1),
            None => None,
        }
    }

    fn children(&self, offset: UnitOffset, mut each: impl FnMut(&Self, &Entry)) -> Option<()> {
        let mut tree = self.unit.entries_tree(Some(offset)).ok()?;
        let mut children = tree.root().ok()?.children();
        while let Some(child) = children.next().ok()? {
            each(self, child.entry());
        }
        Some(())
    }

    fn entry(&self, offset: UnitOffset) -> Option<Entry> {
        self.unit.entry(offset).ok()
    }

    fn name(&self, entry: &Entry) -> Option<String> {
        let value = entry.attr_value(gimli::DW_AT_name)?;
        let name = self.dwarf.attr_string(self.unit, value).ok()?;
        (name.len() <= 1024).then(|| Some(name.to_string_lossy().ok()?.into_owned()))?
    }
}

/// Path of an entry. Scopes without a name are left out.
fn path(scopes: &[(isize, String)], name: &str) -> String {
    let scopes = scopes.iter().map(|(_, name)| name.as_str()).filter(|name| !name.is_empty());
    scopes.chain([name]).collect::<Vec<_>>().join("::")
}

fn type_of(entry: &Entry) -> Option<UnitOffset> {
    match entry.attr_value(gimli::DW_AT_type)? {
        AttributeValue::UnitRef(offset) => Some(offset),
        _ => None,
    }
}
