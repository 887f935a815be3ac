//! Messages through a pair of connected Unix stream sockets.

use std::os::unix::net::UnixStream;

use super::{Class, Ends, Mechanism, Settings, Unavailable, stream};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new(
        "socketpair",
        Class::Sleep,
        "the message itself through a pair of Unix stream sockets",
        make,
    )]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let failed = |error| Unavailable::new("socketpair", error);
    let (lead, follow) = UnixStream::pair().map_err(failed)?;
    let (lead_in, follow_in) =
        (lead.try_clone().map_err(failed)?, follow.try_clone().map_err(failed)?);
    Ok(stream::ends((lead_in, lead), (follow_in, follow), settings))
}
