//! The output of the renderers, to the letter.

mod comparison;
mod fixture;
mod format;
mod hostile;
mod page;
mod prediction;
mod profile;
mod profiles;
mod text;
