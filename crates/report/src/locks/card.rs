//! A card on the page.

pub(crate) struct Card {
    pub(crate) figure: String,
    pub(crate) heading: String,
    pub(crate) detail: String,
}
