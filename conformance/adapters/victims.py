"""Finds the broker that the suite hostile attacks: a running one, or one that is started here."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, release_of
from mqproof.conformance.adapters.apache.servers import (
    ApacheServerError,
    broker,
    home,
    name_server,
    running,
)
from mqproof.conformance.adapters.attacked_servers import ACCOUNTS, ADMINISTRATOR, STRANGER, attacked
from mqproof.conformance.engine.targets import APACHE, IMPL, REMOTING, TargetError, UnknownTargetError
from mqproof.conformance.hostile.attack import Names, Scene
from mqproof.conformance.hostile.seen import Victim
from mqproof.conformance.hostile.suite import NotApplicableError
from mqproof.conformance.hosts.processes import Cluster, ClusterError, cluster
from mqproof.conformance.wire.server_connection import Address

EXPECTED: Final = "remoting://HOST:PORT of a broker, impl, or apache:4 or 5"
_UNKNOWN: Final = {
    Scene.ACCOUNTS: "the suite knows no accounts of this broker",
    Scene.SLAVES: "the suite does not know the port of slaves of this broker",
    Scene.MEMBERS: "the suite does not know the ports of members of this broker",
    Scene.CONSUMER: "the consumer is mqproof's own; the target impl examines it",
}


@contextmanager
def victims(target: str, scene: Scene) -> Iterator[Victim]:
    """Yield the broker of the target. Start it if necessary.

    Raises:
        UnknownTargetError, TargetError, NotApplicableError.
    """
    with ExitStack() as stack:
        if target.startswith(REMOTING):
            yield _running(target, scene)
        elif target == IMPL:
            yield stack.enter_context(_process() if scene is Scene.BROKER else attacked(scene))
        elif target.startswith(APACHE):
            yield stack.enter_context(_apache(release_of(target.removeprefix(APACHE)), scene))
        else:
            raise UnknownTargetError(f"{target!r}: the suite hostile needs {EXPECTED}")


def _running(target: str, scene: Scene) -> Victim:
    try:
        address = Address.parse(target.removeprefix(REMOTING))
    except ValueError as error:
        raise UnknownTargetError(f"{target!r}: {error}; the suite hostile needs {EXPECTED}") from None
    if scene is not Scene.BROKER:
        raise NotApplicableError(_UNKNOWN[scene])
    return Victim((address,))


@contextmanager
def _process() -> Iterator[Victim]:
    """Yield our broker in a process of its own, so that its memory can be measured."""
    with (
        tempfile.TemporaryDirectory(prefix="mqproof-hostile-") as folder,
        cluster(Path(folder), "ASYNC_FLUSH") as made,
    ):
        try:
            made.start_name_server()
            made.start_broker()
        except ClusterError as error:
            raise TargetError(str(error)) from None
        yield Victim((Address("127.0.0.1", made.broker_port),), lambda: memory_mib(made))


def memory_mib(made: Cluster) -> int:
    """Return the broker's anonymous memory; mapped pages of the page cache do not count."""
    return _memory_mib(made.processes["broker"].pid)


def _memory_mib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("RssAnon")]
    return int(line.split()[1]) // 1024


@contextmanager
def _apache(release: str, scene: Scene) -> Iterator[Victim]:
    """Yield a broker of Apache RocketMQ."""
    if scene in (Scene.MEMBERS, Scene.CONSUMER):
        raise NotApplicableError(_UNKNOWN[scene])
    if scene is Scene.ACCOUNTS and not release.startswith("4."):
        raise NotApplicableError("RocketMQ 5 has users and policies in place of the accounts of the suite")
    with tempfile.TemporaryDirectory(prefix="mqproof-hostile-") as folder, ExitStack() as stack:
        (home(Path(folder)) / "conf" / "plain_acl.yml").write_text(ACCOUNTS, encoding="utf-8")
        try:
            names = name_server(release, Path(folder))
            server = broker(release, Path(folder), names.address, properties=_PROPERTIES.get(scene))
            stack.enter_context(running(names, server))
        except (ApacheMissingError, ApacheServerError) as error:
            raise TargetError(str(error)) from None
        address = Address(server.address.host, server.address.port)
        victim = Victim((address,), lambda: _memory_mib(server.pid))
        if scene is Scene.ACCOUNTS:
            known = Names("", "", account=STRANGER, administrator=ADMINISTRATOR)
            victim = replace(victim, administrator=ADMINISTRATOR, known=known)
        if scene is Scene.SLAVES:
            # 4.9 ignores haListenPort in a broker's file.
            step = 1 if release.startswith("4.") else -1
            victim = replace(victim, ports=(Address(address.host, address.port + step),))
        yield victim


_PROPERTIES: Final[Mapping[Scene, Mapping[str, str]]] = {
    Scene.ACCOUNTS: {"aclEnable": "true"},
    # With its default of inSyncReplicas, 5.x waits for no slave; 4.9 does not know the property.
    Scene.SLAVES: {"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2"},
}
