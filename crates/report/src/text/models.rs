use crate::clean::clean;
use crate::label::plural;
use crate::units::count;

/// Sentences on the models of rows, each a number of `things`, a model, and the reason for it.
pub(super) fn by_model<'r>(
    rows: impl Iterator<Item = (u32, &'r str, &'r str)> + Clone,
    things: &str,
) -> Vec<String> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (_, model, why) in rows.clone() {
        if !seen.contains(&(model, why)) {
            seen.push((model, why));
        }
    }
    let sentence = |(model, why): (&str, &str)| {
        let own = rows.clone().filter(|row| (row.1, row.2) == (model, why));
        let (least, most) = own.fold((u32::MAX, 0), |(least, most), (number, ..)| {
            (least.min(number), most.max(number))
        });
        let numbers = match plural(most.into(), things) {
            one if least == most => one,
            most => format!("{} to {most}", count(least.into())),
        };
        format!("{}: {} ({numbers}).", clean(model), clean(why))
    };
    seen.into_iter().map(sentence).collect()
}
