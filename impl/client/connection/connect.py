"""The entry point for applications: a session with a real cluster, over real sockets.

    async with connect("127.0.0.1:9876") as session:
        producer = Producer(session)

docs/how-to/client.md has an example for each kind of producer and consumer.
"""

from mqproof.impl.client.connection.group_claims import OF_PROCESS
from mqproof.impl.client.connection.session import Session
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
    """Return a session on the running event loop, to be used in `async with`.

    `name_servers` is `host:port`, several of them separated by `;`, or the `http://` address of a server that
    returns such a list. `client_id` is needed only by a broadcast consumer that must continue at its last
    offset after a restart. `tls` is the path of a tls.properties file. If `credentials` are given, they sign
    every request.

    Raises:
        ValueError: `name_servers` contains no address.
        ConfigError, OSError: the TLS file cannot be used.
    """
    found = parse(name_servers)
    if not found:
        raise ValueError(f"{name_servers!r} names no name server, HOST:PORT expected")
    runtime = production(AsyncioNetwork(), load(tls) if tls else None)
    return Session(found, runtime, client_id, credentials=credentials, claims=OF_PROCESS)
