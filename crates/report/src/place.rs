//! Places in a ranking. Rows whose intervals do not distinguish them share places.

use crate::table::Cell;
use crate::units::UNKNOWN;

/// Figures that determine a row's place; smaller figures are better.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) figure: Option<[f64; 2]>,
    /// 95% interval of the row's paired ratio to the base row, which is the same for all rows.
    pub(crate) ratio: Option<[f64; 2]>,
}

impl Standing {
    /// Returns `true` if the intervals of the figures and, if known, of the ratios show that this
    /// row is better. Figures alone do not suffice, because two groups may have met different
    /// states of the machine. Ratios alone do not suffice, because ratios from two groups share
    /// only their base row.
    fn beats(&self, other: &Standing) -> bool {
        let below = |one: Option<[f64; 2]>, other: Option<[f64; 2]>| Some(one?[1] < other?[0]);
        below(self.figure, other.figure) == Some(true)
            && below(self.ratio, other.ratio) != Some(false)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Place {
    pub(crate) const NOTE: &str = "place: best and worst that the intervals allow; paired ratios may tell apart rows that share one.";

    pub(crate) fn cell(place: Option<Place>) -> Cell {
        match place {
            None => Cell::text(UNKNOWN),
            Some(Place { first, last }) => {
                let text =
                    if first == last { first.to_string() } else { format!("{first}–{last}") };
                Cell::new(Some((first + last) as f64 / 2.0), text)
            }
        }
    }
}

pub(crate) fn places(rows: &[Standing]) -> Vec<Option<Place>> {
    let ranked = rows.iter().filter(|row| row.figure.is_some()).count();
    let place = |row: &Standing| {
        row.figure?;
        let better = rows.iter().filter(|other| other.beats(row)).count();
        let worse = rows.iter().filter(|other| row.beats(other)).count();
        Some(Place { first: 1 + better, last: ranked - worse })
    };
    rows.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(figure: [f64; 2], ratio: Option<[f64; 2]>) -> Standing {
        Standing { figure: Some(figure), ratio }
    }

    #[test]
    fn rows_that_are_not_told_apart_share_places() {
        let rows = [
            standing([1.0, 2.0], None),
            standing([3.0, 5.0], None),
            standing([4.0, 7.0], None),
            standing([6.0, 8.0], None),
            Standing::default(),
        ];
        let place = |first, last| Some(Place { first, last });
        assert_eq!(places(&rows), [place(1, 1), place(2, 3), place(2, 4), place(3, 4), None]);
    }

    #[test]
    fn ratios_can_only_take_a_place_away() {
        let apart = [[1.0, 2.0], [3.0, 4.0]];
        let told = |ratios: [[f64; 2]; 2]| {
            let rows = [0, 1].map(|row| standing(apart[row], Some(ratios[row])));
            places(&rows)[0].is_some_and(|place| place.last == 1)
        };
        assert!(told([[0.9, 1.0], [1.1, 1.2]]));
        assert!(!told([[0.9, 1.1], [1.0, 1.2]]));
        assert!(!told([[1.1, 1.2], [0.9, 1.0]]), "they contradict each other");
    }
}
