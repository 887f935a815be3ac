//! Messages over a TCP connection on loopback, with Nagle's algorithm off.

use std::net::{Ipv4Addr, TcpListener, TcpStream};

use super::{Class, Ends, Mechanism, Settings, Unavailable, stream};

pub(super) fn mechanisms() -> [Mechanism; 1] {
    [Mechanism::new(
        "tcp-loopback",
        Class::Sleep,
        "the message itself through a TCP connection over loopback, with TCP_NODELAY",
        make,
    )]
}

fn make(settings: &Settings) -> Result<Ends, Unavailable> {
    let failed = |error| Unavailable::new("a TCP connection over loopback", error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let lead = TcpStream::connect(listener.local_addr().map_err(failed)?).map_err(failed)?;
    let own = lead.local_addr().map_err(failed)?;
    // Another local process may connect to the port first; accept only our own connection.
    let follow = loop {
        let (stream, peer) = listener.accept().map_err(failed)?;
        if peer == own {
            break stream;
        }
    };
    lead.set_nodelay(true).map_err(failed)?;
    follow.set_nodelay(true).map_err(failed)?;
    let (lead_in, follow_in) =
        (lead.try_clone().map_err(failed)?, follow.try_clone().map_err(failed)?);
    Ok(stream::ends((lead_in, lead), (follow_in, follow), settings))
}
