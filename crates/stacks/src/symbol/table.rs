//! ELF symbol tables.

use std::sync::Arc;

use crate::image::{Image, Section};

/// Maximum number of symbols of one file: 16 MB. Further symbols are ignored.
const MAX_SYMBOLS: usize = 1 << 20;
const BATCH: usize = 2048;
const MAX_NAME: usize = 4096;
const ENTRY: usize = 24;
/// Number of preceding symbols that are checked for one that contains an address: symbols may nest.
const NESTED: usize = 8;

const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
const SELECTED_FUNCTION: u8 = 10;
const LOCAL: u8 = 0;

/// Functions or variables of a file. Names stay in the file until they are needed.
#[derive(Debug)]
pub(super) struct SymbolTable {
    symbols: Vec<Symbol>,
    image: Arc<Image>,
    names: Option<Section>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) address: u64,
    pub(super) size: u32,
    /// Offset of the symbol's name; the highest bit is set if the name is local to a source file.
    name: u32,
}

const LOCAL_NAME: u32 = 1 << 31;

impl SymbolTable {
    /// Returns the functions and the variables of a file.
    pub(super) fn read(image: &Arc<Image>) -> (SymbolTable, SymbolTable) {
        let section = image.section(".symtab").or_else(|| image.section(".dynsym"));
        let names = section.and_then(|section| image.section_at(section.link)).cloned();
        let (mut functions, mut data) = (Vec::new(), Vec::new());
        let mut entries = vec![0; BATCH * ENTRY];
        let mut at = 0;
        while let Some(section) = section
            && functions.len() + data.len() < MAX_SYMBOLS
        {
            let length = image.contents_at(section, at, &mut entries);
            if length < ENTRY {
                break;
            }
            at += length as u64;
            for entry in entries[..length].chunks_exact(ENTRY) {
                match Symbol::read(entry) {
                    Some((FUNCTION | SELECTED_FUNCTION, symbol)) => functions.push(symbol),
                    Some((OBJECT, symbol)) if symbol.holds_data() => data.push(symbol),
                    _ => {}
                }
            }
        }
        let table = |mut symbols: Vec<Symbol>| {
            // Of several names at an address, a global one is preferred, because it is better
            // known.
            symbols.sort_unstable_by_key(|symbol| {
                (symbol.address, symbol.name & LOCAL_NAME, symbol.size, symbol.name)
            });
            symbols.dedup_by_key(|symbol| symbol.address);
            symbols.shrink_to_fit();
            SymbolTable { symbols, image: image.clone(), names: names.clone() }
        };
        (table(functions), table(data))
    }

    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    pub(super) fn find(&self, address: u64) -> Option<Symbol> {
        find(&self.symbols, address)
    }

    pub(super) fn name(&self, symbol: Symbol) -> Option<String> {
        let mut bytes = vec![0; MAX_NAME];
        let section = self.names.as_ref()?;
        let length =
            self.image.contents_at(section, (symbol.name & !LOCAL_NAME).into(), &mut bytes);
        let end = bytes[..length].iter().position(|&byte| byte == 0).unwrap_or(length);
        let name = String::from_utf8_lossy(&bytes[..end]);
        let plain = without_suffix(&name);
        (!plain.is_empty()).then(|| demangled(plain))
    }
}

fn find(symbols: &[Symbol], address: u64) -> Option<Symbol> {
    let after = symbols.partition_point(|symbol| symbol.address <= address);
    let before = symbols[..after].iter().rev();
    let nearest = *before.clone().next()?;
    let contains = |symbol: &&Symbol| address - symbol.address < symbol.size.into();
    before.take(NESTED).find(contains).copied().or((nearest.size == 0).then_some(nearest))
}

/// A name as it appears in the source; unchanged if no compiler mangled it.
pub(super) fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    // Without such a prefix, a C name could be mistaken for a mangled type: `m` would become
    // `unsigned long`.
    let encoded = ["_Z", "__Z", "___Z", "____Z", "_GLOBAL_"].iter().any(|of| name.starts_with(of));
    let cpp = cpp_demangle::Symbol::new(name).ok().filter(|_| encoded);
    cpp.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| name.to_owned())
}

/// Removes a version (`memcpy@GLIBC_2.2.5`) and the suffixes that compilers add to clones and parts
/// of a function.
fn without_suffix(name: &str) -> &str {
    const SUFFIXES: [&str; 7] =
        ["@", ".cold", ".constprop.", ".isra.", ".llvm.", ".lto_priv.", ".part."];
    let ends = SUFFIXES.iter().filter_map(|suffix| name.find(suffix));
    { ends }.filter(|&end| end > 0).min().map_or(name, |end| &name[..end])
}

impl Symbol {
    fn read(entry: &[u8]) -> Option<(u8, Symbol)> {
        let word = |at: usize| Some(u32::from_le_bytes(*entry.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_le_bytes(*entry.get(at..)?.first_chunk()?));
        let defined = entry.get(6..8)? != [0, 0];
        let size = u32::try_from(long(16)?).unwrap_or(u32::MAX);
        let local = if entry[4] >> 4 == LOCAL { LOCAL_NAME } else { 0 };
        let name = word(0)?;
        let defined = defined && name & LOCAL_NAME == 0;
        let symbol = Symbol { address: long(8)?, size, name: name | local };
        defined.then_some((entry[4] & 0xf, symbol))
    }

    /// Returns `false` for a data symbol that only marks a place, such as `__TMC_END__`. Such a
    /// symbol has no size, and the bytes after it do not belong to it.
    fn holds_data(&self) -> bool {
        self.size > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_of_compilers_are_cut_off() {
        for (name, expected) in [
            ("work", "work"),
            ("work.part.0.constprop.3", "work"),
            ("_Z4workv.cold", "_Z4workv"),
            ("memcpy@GLIBC_2.2.5", "memcpy"),
            (".L1", ".L1"),
            ("_ZN3abc13closure$u20$.llvm.81", "_ZN3abc13closure$u20$"),
        ] {
            assert_eq!(without_suffix(name), expected);
        }
    }

    #[test]
    fn names_that_no_compiler_encoded_stay_as_they_are() {
        for name in ["m", "w", "f", "Pc", "main", "Z", "_"] {
            assert_eq!(demangled(name), name);
        }
        assert_eq!(demangled("_Z4workv"), "work()");
    }

    /// The parameter list tells a C++ namespace `core` from Rust's `core`.
    #[test]
    fn names_of_cpp_list_parameters_and_those_of_rust_do_not() {
        for (name, expected) in [
            ("_ZN4core6Engine4stepEi", "core::Engine::step(int)"),
            ("_ZN4core4stepEv", "core::step()"),
            ("_ZN4core3ptr4read17h0123456789abcdefE", "core::ptr::read"),
            ("_RNvNtCs1234_4core3ptr4read", "core::ptr::read"),
        ] {
            assert_eq!(demangled(name), expected);
        }
    }

    #[test]
    fn the_smallest_symbol_around_an_address_is_found() {
        let entry = |address: u64, size: u64, name: u32| {
            let mut bytes = [0; ENTRY];
            bytes[..4].copy_from_slice(&name.to_le_bytes());
            bytes[4] = FUNCTION;
            bytes[6] = 1;
            bytes[8..16].copy_from_slice(&address.to_le_bytes());
            bytes[16..].copy_from_slice(&size.to_le_bytes());
            bytes
        };
        let entries = [entry(0x100, 0x100, 1), entry(0x140, 0x10, 2), entry(0x300, 0, 3)];
        let symbols = entries.iter().map(|entry| Symbol::read(entry).unwrap().1);
        let symbols: Vec<_> = symbols.collect();
        assert_eq!(symbols.iter().filter(|symbol| symbol.holds_data()).count(), 2);
        let name = |address| find(&symbols, address).map(|symbol| symbol.name & !LOCAL_NAME);
        assert_eq!(name(0xff), None);
        assert_eq!(name(0x100), Some(1));
        assert_eq!(name(0x14f), Some(2));
        assert_eq!(name(0x150), Some(1));
        assert_eq!(name(0x200), None);
        assert_eq!(name(0x345), Some(3));
    }
}
