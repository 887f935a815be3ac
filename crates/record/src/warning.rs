use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Text;

/// Something that affects the figures, with advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable name for scripts.
    pub code: Text,
    /// The finding and its remedy, in sentences.
    pub text: Text,
}

impl Warning {
    /// Creates a warning. Warnings about figures are declared by [`warnings!`](crate::warnings), so
    /// that they are documented.
    pub fn new(code: impl Into<Text>, text: impl Into<Text>) -> Self {
        Warning { code: code.into(), text: text.into() }
    }
}

/// Template of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarningForm {
    /// Stable name of the warning, for scripts.
    pub code: &'static str,
    /// The condition under which the warning is given.
    pub when: &'static str,
    /// Text of the warning, with placeholders in braces.
    pub text: &'static str,
}

/// Declares warnings, each with a condition, a code, a function, and a template. The function makes
/// a warning from the values of the template's placeholders. Also declares `WARNINGS`, a list of
/// the warnings.
#[macro_export]
macro_rules! warnings {
    ($($when:literal $code:literal $name:ident($($part:ident),*) = $text:literal;)+) => {
        $(
            pub(super) fn $name($($part: impl ::std::fmt::Display),*) -> $crate::Warning {
                $crate::Warning::new($code, format!($text))
            }
        )+

        /// All warnings of this module.
        pub const WARNINGS: &[$crate::WarningForm] = &[
            $($crate::WarningForm { code: $code, when: $when, text: $text }),+
        ];
    };
}
