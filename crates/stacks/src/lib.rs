//! Unwinds the thread stacks of another process and names their functions, without stopping the
//! process.
//!
//! Threads, their activity, memory and mappings are read from `/proc` and with `process_vm_readv`.
//! Nothing is injected, traced or written to. All data from a process or its files is validated
//! before use.
//!
//! The data is not guaranteed to be consistent: a thread may run while its stack is copied. A stack
//! with implausible return addresses is marked as cut. Frames that unwind tables do not cover are
//! inferred where the evidence allows, and marked as inferred. Script functions and code from JIT
//! compilers are not named.
//!
//! | module | contents |
//! |---|---|
//! | [`process`] | processes, their threads and memory |
//! | [`image`] | the ELF files that a program has mapped, and the code that it can run |
//! | [`stack`] | call stacks, from registers and a copy of the stack |
//! | [`symbol`] | names of functions and data, and static variables by their types |
//! | [`table`] | numbered stacks of many threads |

pub mod image;
pub mod process;
mod spin_loop;
pub mod stack;
pub mod symbol;
pub mod table;

pub use table::StackTable;
