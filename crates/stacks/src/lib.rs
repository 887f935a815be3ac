//! A stack with names for a thread of another process that is never stopped.
//!
//! Threads, what each does, memory and mappings are read from `/proc` and with `process_vm_readv`.
//! Registers and a copy of a stack become call frames, and frames become names. Nothing is
//! injected, traced or written to, and data of a process or its files is validated before use.
//!
//! It does not promise a consistent view: a thread may run while its stack is copied. A stack whose
//! return addresses make no sense is marked as cut. Frames that no unwind table leads to are
//! inferred where the evidence allows it, and marked as inferred. Scripts, and code that a virtual
//! machine generates, have no names.
//!
//! | module | contents |
//! |---|---|
//! | [`process`] | processes, their threads and memory |
//! | [`image`] | the ELF files that a program has mapped, and the code that it can run |
//! | [`stack`] | call stacks, from registers and a copy of the stack |
//! | [`symbol`] | names of functions and data, and static variables by their types |
//! | [`table`] | stacks of many threads, each known by a number |

pub mod image;
pub mod process;
mod spin_loop;
pub mod stack;
pub mod symbol;
pub mod table;

pub use table::StackTable;
