"""The settings of a client: from a file, from the environment and from arguments, in their order.

See docs/how-to/client.md, "Name, settings and hooks of a client". The files are real ones.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.scripted_servers import ScriptedServers
from mqproof.impl.client.connection.client_settings import ClientSettings
from mqproof.impl.client.connection.connect import connect
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.properties import ConfigError

_VARIABLE: Final = "NAMESRV_ADDR"
_FILE: Final = """# a comment
namesrvAddr = 10.0.0.1:9876;10.0.0.2:9876
instanceName=billing
unitName=eu
clientId=whole
tlsConfigFile=none.properties
accessKey=key
secretKey=secret
securityToken=token
"""
_OF_FILE: Final = ClientSettings(
    "10.0.0.1:9876;10.0.0.2:9876", "billing", "eu", "whole", "none.properties", "key", "secret", "token"
)
_WRONG: Final = (
    (b"nameserver=x\n", ":1: nameserver is not known, one of namesrvAddr, instanceName, unitName, clientId, "
                        "tlsConfigFile, accessKey, secretKey, securityToken expected"),
    (b"clientId=x\nClientId=x\n", ":2: ClientId is not known"), (b"no setting\n", ":1"),
    (b"unitName=\xff\n", ": not UTF-8: invalid start byte at byte 9"),
)  # fmt: skip
_PLAIN: Final = ClientSettings(name_servers="10.0.0.4:9876")
_CHOSEN: Final[tuple[tuple[dict[str, Any], bool], ...]] = (
    ({}, False), ({"instance": "DEFAULT"}, False), ({"unit": "eu"}, False), ({"instance": "billing"}, True),
    ({"client_id": "10.0.0.1@x"}, True), ({"settings": replace(_PLAIN, instance="billing")}, True),
    ({"settings": replace(_PLAIN, client_id="10.0.0.1@x")}, True),
    ({"settings": replace(_PLAIN, instance="billing"), "instance": "DEFAULT"}, False),
)  # fmt: skip
"""Arguments of `connect`, and whether two processes can have the client id."""


async def judge(expect: Expectations, _servers: ScriptedServers) -> None:
    with tempfile.TemporaryDirectory(prefix="mqproof-settings-") as folder:
        _files(expect, Path(folder) / "client.properties")
    with _environment(None):
        expect.refused("no name server", ValueError, connect)
        expect.refused("an empty list of name servers", ValueError, lambda: connect(""))
    with _environment("10.0.0.3:9876"):
        for given, name_server in ((None, "10.0.0.3:9876"), (_PLAIN, "10.0.0.4:9876")):
            session = connect(settings=given)
            expect.equal("the name server", [name_server], list(map(str, session.name_servers.addresses)))
        session = connect("10.0.0.5:9876", settings=_PLAIN)
        expect.equal(
            "the given name server", ["10.0.0.5:9876"], list(map(str, session.name_servers.addresses))
        )
        expect.refused("a TLS file that is none", FileNotFoundError, lambda: connect(tls="none.properties"))
        own, given = Credentials("own", "1"), replace(_PLAIN, access_key="given", secret_key="2")
        for credentials, key in ((own, "own"), (None, "given")):
            account = connect(settings=given, credentials=credentials).remoting.credentials
            expect.equal("the account of a session", key, account and account.access_key)
        for arguments, is_chosen in _CHOSEN:
            session = connect(**arguments)
            expect.equal(f"whether the id of {arguments} is chosen", is_chosen, session._is_id_chosen)
        shared = connect(instance="one")._claims is connect(instance="two")._claims
        expect.equal("whether the sessions of a process share their groups", True, shared)
        parts = connect(unit="u").client_id.split("@")
        expect.equal("the end of the id of a unit", (3, "u"), (len(parts), parts[-1]))
    expect.equal("settings without name servers", None, _unset().name_servers)


def _unset() -> ClientSettings:
    with _environment(""):
        return ClientSettings().or_environment()


def _files(expect: Expectations, path: Path) -> None:
    path.write_text(_FILE)
    settings = ClientSettings.from_file(path)
    expect.equal("the settings of a file", _OF_FILE, settings)
    expect.refused("a TLS file that does not exist", FileNotFoundError, lambda: connect(settings=settings))
    session = connect(settings=replace(settings, tls=None))
    account = session.remoting.credentials
    shown = account and (account.access_key, account.secret_key, account.security_token)
    expect.equal("the account of a file", ("key", "secret", "token"), shown)
    expect.equal("the client id of a file", ("whole", True), (session.client_id, session._is_id_chosen))
    for content, problem in _WRONG:
        path.write_bytes(content)
        try:
            expect.equal(f"a file with {content!r}", None, ClientSettings.from_file(path))
        except ConfigError as error:
            found = str(error).removeprefix(str(path))[: len(problem)]
            expect.equal(f"the error of {content!r}", problem, found)


@contextmanager
def _environment(name_servers: str | None) -> Iterator[None]:
    """Set the variable with the name servers, or remove it."""
    before = os.environ.pop(_VARIABLE, None)
    if name_servers is not None:
        os.environ[_VARIABLE] = name_servers
    try:
        yield
    finally:
        os.environ.pop(_VARIABLE, None)
        if before is not None:
            os.environ[_VARIABLE] = before
