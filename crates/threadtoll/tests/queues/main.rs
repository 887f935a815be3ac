//! The queues as their users see them: every verb against a plain model, many threads at once, and bad luck.

#![allow(clippy::expect_used, reason = "a test that cannot set its stage has failed")]

mod element;
mod frozen;
mod funnel_model;
mod misfortune;
mod pipe_model;
mod threads;
