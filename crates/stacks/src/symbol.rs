//! Names of functions and variables, and static variables found by type.
//!
//! Names come from the symbol table; inlined functions and types come from DWARF. Both are in the
//! file itself or in separate debug information, found by build ID. Everything is read on first
//! use, through the open files of [`Images`], so names can be looked up after the program has
//! ended.
//!
//! All symbols of a file are kept in memory. Of 200 MB of debug information, about 10 MB are in
//! memory at a time.
//!
//! Split debug information (`.dwo`), debug information compressed with zstd, compressed debug
//! information larger than 16 MB, and units larger than 8 MB are not read. Names then come from the
//! symbol table alone.

mod inlined;
mod statics;
mod table;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::image::{CodeAddress, Image, ImageId, Images, Place};
use inlined::Functions;
pub use statics::{StaticVariable, StaticVariables, Wanted};
use table::SymbolTable;

/// Maximum number of entries in each cache of names.
const MAX_REMEMBERED: usize = 1 << 14;
/// Maximum number of symbols in memory, over all files: 16 MB.
const MAX_SYMBOLS: usize = 1 << 20;
/// Maximum number of files whose debug information is open at a time; each takes up to 10 MB.
const MAX_OPEN: usize = 2;

/// Names of the functions and variables in the files of [`Images`].
#[derive(Debug, Default)]
pub struct Symbols {
    files: HashMap<ImageId, File>,
    described: HashMap<CodeAddress, Arc<[String]>>,
    names: HashMap<CodeAddress, Arc<str>>,
    symbols: usize,
}

/// A variable from a symbol table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Demangled name.
    pub name: String,
    /// Offset of the given address from the start of the variable, in bytes.
    pub offset: u64,
    /// Size of the variable, in bytes.
    pub size: u64,
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            0 => f.write_str(&self.name),
            offset => write!(f, "{}+{offset:#x}", self.name),
        }
    }
}

#[derive(Debug)]
struct File {
    image: Arc<Image>,
    debug: Option<Arc<Image>>,
    functions: SymbolTable,
    data: SymbolTable,
    /// `None` until it is needed; `Some(None)` if the file has no debug information.
    inlined: Option<Option<Functions>>,
}

impl Symbols {
    /// Creates an empty collection.
    pub fn new() -> Symbols {
        Symbols::default()
    }

    /// Demangled names of the functions at an address, innermost first: inlined functions, then the
    /// function into which they were inlined. A function without a symbol is named by its file and
    /// address.
    ///
    /// For a return address, pass [`Frame::instruction`](crate::stack::Frame::instruction).
    pub fn describe(&mut self, images: &Images, place: Place) -> Arc<[String]> {
        let Place::Image(code) = place else { return Arc::new([self.name(images, place)]) };
        if let Some(known) = self.described.get(&code) {
            return known.clone();
        }
        let inlined = self.inlined(images, code.image);
        let mut functions = inlined.map(|inlined| inlined.find(code.address)).unwrap_or_default();
        match functions.last_mut() {
            Some(outermost) if !outermost.is_empty() => {}
            Some(outermost) => *outermost = self.name(images, place),
            None => functions.push(self.name(images, place)),
        }
        let functions: Arc<[String]> = functions.into();
        if self.described.len() >= MAX_REMEMBERED {
            self.described.clear();
        }
        self.described.insert(code, functions.clone());
        functions
    }

    /// Name of the function at an address, from the symbol table alone. If no symbol contains the
    /// address, returns the file name and the address.
    pub fn name(&mut self, images: &Images, place: Place) -> String {
        let code = match place {
            Place::Image(code) => code,
            Place::Generated => return "[generated code]".to_owned(),
            Place::NotCode => return "[no code]".to_owned(),
        };
        match (self.function_at(images, place), images.get(code.image)) {
            (Some(name), _) => name.to_string(),
            (None, Some(image)) => format!("{}+0x{:x}", image.name(), code.address),
            (None, None) => "[unknown]".to_owned(),
        }
    }

    /// Name of the function at an address if a symbol contains the address. Cheaper than
    /// [`describe`](Symbols::describe), but ignores inlined functions.
    pub fn function_at(&mut self, images: &Images, place: Place) -> Option<Arc<str>> {
        let Place::Image(code) = place else { return None };
        self.file(images, code.image)?;
        let file = self.files.get(&code.image)?;
        let symbol = file.functions.find(code.address)?;
        let key = CodeAddress { address: symbol.address, ..code };
        if let Some(name) = self.names.get(&key) {
            return Some(name.clone());
        }
        let name: Arc<str> = file.functions.name(symbol)?.into();
        if self.names.len() >= MAX_REMEMBERED {
            self.names.clear();
        }
        self.names.insert(key, name.clone());
        Some(name)
    }

    /// Address and number of bytes of the function at an address, if a symbol contains the address.
    pub(crate) fn extent(&mut self, images: &Images, code: CodeAddress) -> Option<(u64, usize)> {
        let symbol = self.file(images, code.image)?.functions.find(code.address)?;
        Some((symbol.address, symbol.size as usize))
    }

    /// The variable that contains an address.
    pub fn variable(&mut self, images: &Images, data: CodeAddress) -> Option<Variable> {
        let file = self.file(images, data.image)?;
        let symbol = file.data.find(data.address)?;
        let (name, offset) = (file.data.name(symbol)?, data.address - symbol.address);
        Some(Variable { name, offset, size: symbol.size.into() })
    }

    /// Static variables whose types `wanted` selects; `None` if the file has no debug information.
    pub fn static_variables<K: Copy>(
        &mut self,
        images: &Images,
        image: ImageId,
        wanted: Wanted<K>,
    ) -> Option<StaticVariables<K>> {
        let file = self.file(images, image)?;
        StaticVariables::of(file.debug.as_ref().unwrap_or(&file.image), wanted)
    }

    fn inlined(&mut self, images: &Images, id: ImageId) -> Option<&mut Functions> {
        if self.file(images, id)?.inlined.is_none() {
            let open = self.files.values().filter(|file| matches!(file.inlined, Some(Some(_))));
            if open.count() >= MAX_OPEN {
                self.files.values_mut().for_each(|file| file.inlined = None);
            }
            let file = self.files.get_mut(&id)?;
            let debug = file.debug.as_ref().unwrap_or(&file.image);
            file.inlined = Some(Functions::read(debug));
        }
        self.files.get_mut(&id)?.inlined.as_mut()?.as_mut()
    }

    fn file(&mut self, images: &Images, id: ImageId) -> Option<&mut File> {
        if !self.files.contains_key(&id) {
            let file = File::open(images.get(id)?);
            let symbols = file.functions.len() + file.data.len();
            if self.symbols + symbols > MAX_SYMBOLS {
                self.files.clear();
                self.symbols = 0;
            }
            self.symbols += symbols;
            self.files.insert(id, file);
        }
        self.files.get_mut(&id)
    }
}

impl File {
    fn open(image: &Arc<Image>) -> File {
        let stripped = image.section(".debug_info").is_none() || image.section(".symtab").is_none();
        let debug = stripped.then(|| image.open_debug_file().map(Arc::new)).flatten();
        let with_symbols = debug.iter().find(|debug| debug.section(".symtab").is_some());
        let (functions, data) = SymbolTable::read(match image.section(".symtab") {
            Some(_) => image,
            None => with_symbols.unwrap_or(image),
        });
        let debug = debug.filter(|debug| debug.section(".debug_info").is_some());
        File { image: image.clone(), debug, functions, data, inlined: None }
    }
}
