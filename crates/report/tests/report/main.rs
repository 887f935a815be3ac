//! The output of the renderers, to the letter.

mod answer;
mod comparison;
mod fixture;
mod foreign;
mod format;
mod hostile;
mod locks;
mod page;
mod prediction;
mod profile;
mod profiles;
mod screens;
mod states;
mod text;
mod timelines;
