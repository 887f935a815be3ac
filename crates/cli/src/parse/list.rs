use crate::failure::Failure;

/// Parses distinct values. `twice` creates the error for a repeated value.
pub(super) fn distinct<'a, T: PartialEq>(
    texts: impl IntoIterator<Item = &'a str>,
    read: impl Fn(&'a str) -> Result<T, Failure>,
    twice: impl Fn(&'a str, &T) -> Failure,
) -> Result<Vec<T>, Failure> {
    let mut values = Vec::new();
    for text in texts {
        let value = read(text)?;
        if values.contains(&value) {
            return Err(twice(text, &value));
        }
        values.push(value);
    }
    Ok(values)
}

/// Parses a comma-separated list of distinct values. `noun` is the word for a value in errors.
pub(crate) fn list<T: PartialEq>(
    option: &str,
    text: &str,
    noun: &str,
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    distinct(text.split(',').map(str::trim), read, |part, _| {
        Failure::usage(format!("{option} {text} contains {part} twice"))
            .hint(format!("give each {noun} once"))
    })
}

/// Parses distinct names. `noun` is the word in errors for the named things.
pub(crate) fn names<T: PartialEq>(
    texts: &[String],
    noun: &str,
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    distinct(texts.iter().map(String::as_str), read, |name, _| {
        Failure::usage(format!("{name} is given twice")).hint(format!("give each {noun} once"))
    })
}
