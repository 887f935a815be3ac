//! Messages through a pair of pipes.

use super::{Class, Ends, Mechanism, Settings, Unavailable, stream};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new("os-pipe", Class::Sleep, "the message itself through a pair of pipes", make)]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let pipe = || std::io::pipe().map_err(|error| Unavailable::new("pipe", error));
    let (there_out, there_in) = pipe()?;
    let (back_out, back_in) = pipe()?;
    Ok(stream::ends((there_in, back_out), (back_in, there_out), settings))
}
