"""The entry point for applications: a session with a real cluster, over real sockets.

    async with connect("127.0.0.1:9876") as session:
        producer = Producer(session)

docs/how-to/client.md has an example for each kind of producer and consumer.
"""

from collections.abc import Sequence

from mqproof.impl.client.connection import client_ids
from mqproof.impl.client.connection.client_settings import NAME_SERVERS_VARIABLE, ClientSettings
from mqproof.impl.client.connection.group_claims import OF_PROCESS
from mqproof.impl.client.connection.request_hooks import RequestHook
from mqproof.impl.client.connection.session import Session
from mqproof.impl.remoting.address_server import parse
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.impl.runtime.security.tls_file import load


def connect(
    name_servers: str | None = None,
    client_id: str | None = None,
    *,
    tls: str | None = None,
    credentials: Credentials | None = None,
    instance: str | None = None,
    unit: str | None = None,
    settings: ClientSettings | None = None,
    hooks: Sequence[RequestHook] = (),
) -> Session:
    """Return a session on the running event loop, to be used in `async with`.

    `name_servers` is `host:port`, several of them separated by `;`, or the `http://` address of a server that
    returns such a list. `tls` is the path of a tls.properties file. If `credentials` are given, they sign
    every request. `hooks` see each request and its response.

    A client id is `ADDRESS@INSTANCE`, with `@UNIT` if there is a unit. A broadcast consumer that must
    continue at its last offset after a restart needs an `instance` or a `client_id`. An argument counts
    before `settings`, and both count before the environment variable NAMESRV_ADDR.

    Raises:
        ValueError: there is no name server, a name is invalid, or `client_id` is given with a part of it.
        ConfigError, OSError: the TLS file cannot be used, or the settings have only a part of an account.
    """
    known = (settings or ClientSettings()).or_environment()
    text = known.name_servers if name_servers is None else name_servers
    if text is None:
        raise ValueError(f"no name server: pass HOST:PORT, or set {NAME_SERVERS_VARIABLE}")
    found = parse(text)
    if not found:
        raise ValueError(f"{text!r} names no name server, HOST:PORT expected")
    tls = tls or known.tls
    runtime = production(AsyncioNetwork(), load(tls) if tls else None)
    id_, is_chosen = _client_id(known, client_id, instance, unit)
    return Session(
        found,
        runtime,
        id_,
        credentials=credentials or known.credentials,
        claims=OF_PROCESS,
        hooks=hooks,
        is_id_chosen=is_chosen,
    )


def _client_id(
    known: ClientSettings, client_id: str | None, instance: str | None, unit: str | None
) -> tuple[str, bool]:
    """Return the id from the arguments of `connect`, or else from the settings, and whether it is chosen."""
    is_named = instance is not None or unit is not None
    if client_id is not None and is_named:
        raise ValueError(
            f"client_id {client_id!r} has no use for an instance or a unit: give one or the other"
        )
    whole = client_id or (None if is_named else known.client_id)
    if whole:
        return whole, True
    instance = known.instance if instance is None else instance
    built = client_ids.client_id(instance, known.unit if unit is None else unit)
    return built, not client_ids.is_unique(instance)
