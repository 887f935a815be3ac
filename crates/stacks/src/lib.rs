//! Unwinds the stacks of another process's threads, and names their functions, without ever
//! stopping the process.
//!
//! Threads and their activity, memory and mappings are read from `/proc` and with
//! `process_vm_readv`. Registers and a copy of a stack become call frames, and frames become names.
//! Nothing is injected, traced or written to, and all data from a process or its files is validated
//! before use.
//!
//! The data is not guaranteed to be consistent: a thread may run while its stack is copied. A stack
//! with implausible return addresses is marked as cut. Frames that cannot be found with unwind
//! tables are inferred where the evidence allows it, and marked as inferred. Functions of scripts
//! are not named, nor is code that a JIT compiler generates.
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
