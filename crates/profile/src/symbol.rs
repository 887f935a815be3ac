//! Names of functions and data, source lines, and static locks.
//!
//! Names come from the symbol table, lines and inlined functions from DWARF (read by
//! `addr2line`), either of them from the file itself or from its separate debug information,
//! found by build id. Everything is read when it is first asked for, from files that
//! [`Images`] keeps open: the program may have ended by then.
//!
//! Debug information in pieces (`.dwo`), compressed with zstd, or larger than 192 MB is not read:
//! names then come from the symbol table alone.

mod lines;
mod locks;
mod table;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::image::{CodeAddress, Image, ImageId, Images, Place};
use lines::Lines;
pub use locks::{LockType, StaticLock};
use table::SymbolTable;

/// Descriptions that are remembered at most.
const MAX_REMEMBERED: usize = 1 << 15;
/// Bytes of debug information that are kept at most.
const MAX_DEBUG: u64 = 256 << 20;

/// A function that an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Name, demangled. Without symbols, file name and address in the file.
    pub name: String,
    /// Source file.
    pub file: Option<String>,
    /// Line, counted from 1.
    pub line: Option<u32>,
    /// The compiler put it into the function that follows.
    pub inlined: bool,
}

/// Names of the files in [`Images`].
#[derive(Debug, Default)]
pub struct Symbols {
    files: HashMap<ImageId, File>,
    described: HashMap<CodeAddress, Arc<[Function]>>,
    names: HashMap<CodeAddress, Arc<str>>,
    debug_bytes: u64,
}

#[derive(Debug)]
struct File {
    image: Arc<Image>,
    debug: Option<Arc<Image>>,
    functions: SymbolTable,
    data: SymbolTable,
    lines: Option<Option<Lines>>,
    locks: Option<Arc<[StaticLock]>>,
}

impl Symbols {
    /// Knows nothing yet.
    pub fn new() -> Symbols {
        Symbols::default()
    }

    /// Functions at an address, innermost first: those inlined, then the one that contains them.
    /// For a return address, take [`Frame::instruction`](crate::stack::Frame::instruction).
    pub fn describe(&mut self, images: &Images, place: Place) -> Arc<[Function]> {
        let code = match place {
            Place::Image(code) => code,
            Place::Generated => return plain("[generated code]".to_owned()),
            Place::NotCode => return plain("[no code]".to_owned()),
        };
        if let Some(known) = self.described.get(&code) {
            return known.clone();
        }
        let symbol = self.function_at(images, place);
        let functions = self.describe_code(images, code, symbol.as_deref());
        if self.described.len() >= MAX_REMEMBERED {
            self.described.clear();
        }
        self.described.insert(code, functions.clone());
        functions
    }

    /// Name of the function at an address, by the symbol table alone: cheaper than
    /// [`describe`](Symbols::describe), and blind to inlined functions.
    pub fn function_at(&mut self, images: &Images, place: Place) -> Option<Arc<str>> {
        let Place::Image(code) = place else { return None };
        let file = file(&mut self.files, images, code.image)?;
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

    /// Name of the variable that contains an address, and the address's distance from its start.
    pub fn name_of_data(&mut self, images: &Images, data: CodeAddress) -> Option<(String, u64)> {
        let file = file(&mut self.files, images, data.image)?;
        let symbol = file.data.find(data.address)?;
        Some((file.data.name(symbol)?, data.address - symbol.address))
    }

    /// Locks among the static variables of a file, as its debug information types them.
    pub fn static_locks(&mut self, images: &Images, image: ImageId) -> Arc<[StaticLock]> {
        let Some(file) = file(&mut self.files, images, image) else { return Arc::new([]) };
        if file.locks.is_none() {
            let debug = file.debug.as_ref().unwrap_or(&file.image);
            file.locks = Some(locks::find(debug).into());
        }
        file.locks.clone().unwrap_or_default()
    }

    fn describe_code(
        &mut self,
        images: &Images,
        code: CodeAddress,
        symbol: Option<&str>,
    ) -> Arc<[Function]> {
        let Some(image) = images.get(code.image) else { return plain("[unknown]".to_owned()) };
        let unnamed = || match symbol {
            Some(name) => name.to_owned(),
            None => format!("{}+0x{:x}", image.name(), code.address),
        };
        let mut functions = match self.lines(images, code.image) {
            Some(lines) => lines.find(code.address),
            None => Vec::new(),
        };
        match functions.last_mut() {
            Some(outermost) if outermost.name.is_empty() => outermost.name = unnamed(),
            Some(_) => {}
            None => return plain(unnamed()),
        }
        functions.into()
    }

    fn lines(&mut self, images: &Images, id: ImageId) -> Option<&Lines> {
        let known = file(&mut self.files, images, id)?.lines.is_some();
        if !known {
            let file = self.files.get_mut(&id)?;
            let lines = Lines::read(file.debug.as_ref().unwrap_or(&file.image));
            let bytes = lines.as_ref().map_or(0, Lines::size);
            if self.debug_bytes + bytes > MAX_DEBUG {
                self.files.values_mut().for_each(|file| file.lines = None);
                self.debug_bytes = 0;
            }
            self.debug_bytes += bytes;
            self.files.get_mut(&id)?.lines = Some(lines);
        }
        self.files.get(&id)?.lines.as_ref()?.as_ref()
    }
}

fn file<'a>(
    files: &'a mut HashMap<ImageId, File>,
    images: &Images,
    id: ImageId,
) -> Option<&'a mut File> {
    match files.entry(id) {
        Entry::Occupied(known) => Some(known.into_mut()),
        Entry::Vacant(new) => Some(new.insert(File::open(images.get(id)?))),
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
        File { image: image.clone(), debug, functions, data, lines: None, locks: None }
    }
}

fn plain(name: String) -> Arc<[Function]> {
    Arc::new([Function { name, file: None, line: None, inlined: false }])
}
