"""The way in for applications: a session with a real cluster, over real sockets.

    async with connect("127.0.0.1:9876") as session:
        producer = Producer(session)

docs/client.md has an example for each kind of producer and consumer.
"""

from mqproof.impl.client.session import Session
from mqproof.impl.remoting.address_server import parse
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.impl.runtime.tls_file import load


def connect(
    name_servers: str,
    client_id: str | None = None,
    *,
    tls: str | None = None,
    credentials: Credentials | None = None,
) -> Session:
    """A session, to be used in `async with`, on the running event loop.

    `name_servers` is `host:port`, several separated by `;`, or the `http://` address of a server that tells
    them. Several clients of one machine need no `client_id`; a broadcast consumer that is to go on where it
    was after a restart does. `tls` is the path of a tls.properties; `credentials` sign every request.

    Raises:
        ValueError: the text names no name server. ConfigError, OSError: the TLS file cannot be used.
    """
    found = parse(name_servers)
    if not found:
        raise ValueError(f"{name_servers!r} names no name server, HOST:PORT expected")
    runtime = production(AsyncioNetwork(), load(tls) if tls else None)
    return Session(found, runtime, client_id, credentials=credentials)
