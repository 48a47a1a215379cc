"""Where the servers under test are: somewhere already, or started here and ended afterwards."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters import APACHE, IMPL, REMOTING, UnknownTargetError
from mqproof.conformance.bench import load
from mqproof.conformance.hosts.processes import ClusterError, cluster
from mqproof.conformance.wire.talk import Address

_ROOM: Final = ("-Xmx512m", "-XX:MaxDirectMemorySize=1g")
"""5.5.0 takes 4 MiB for each thread outside the heap, and without them leaves pops unanswered."""
_RUNTIME_INFO: Final = 28
_SAMPLE_TRIES: Final = 600
EXPECTED: Final = "remoting://HOST:PORT[,HOST:PORT], impl, apache:4.9 or apache:5"


class ServersError(Exception):
    """The servers do not come up. One line for a person."""


@contextmanager
def servers(target: str) -> Iterator[list[Address]]:
    """Their addresses: a name server alone, a broker alone, or both in any order.

    Raises:
        UnknownTargetError, ServersError.
    """
    if target.startswith(REMOTING):
        yield _parsed(target)
        return
    with tempfile.TemporaryDirectory(prefix="mqproof-wire-") as folder:
        if target == IMPL:
            with _ours(Path(folder)) as addresses:
                yield addresses
        elif target.startswith(APACHE):
            with _apache(target.removeprefix(APACHE), Path(folder)) as addresses:
                yield addresses
        else:
            raise UnknownTargetError(f"{target!r}: the suite wire needs {EXPECTED}")


def _parsed(target: str) -> list[Address]:
    try:
        addresses = [Address.parse(text) for text in target.removeprefix(REMOTING).split(",")]
    except ValueError as error:
        raise UnknownTargetError(f"{target!r}: {error}") from None
    if len(addresses) > 2:
        raise UnknownTargetError(f"{target!r}: at most a name server and a broker expected")
    return addresses


@contextmanager
def _ours(folder: Path) -> Iterator[list[Address]]:
    # A loaded machine is no reason to refuse.
    patient = folder / "broker.properties"
    patient.write_text("osPageCacheBusyTimeOutMills=60000\n", encoding="utf-8")
    with cluster(folder, "ASYNC_FLUSH") as made:
        made.broker_options = ("-c", str(patient))
        try:
            made.start_name_server()
            made.start_broker()
        except ClusterError as error:
            raise ServersError(str(error)) from None
        yield [Address.parse(made.name_server)]


@contextmanager
def _apache(line: str, folder: Path) -> Iterator[list[Address]]:
    # Imported late: nobody else needs them.
    from mqproof.conformance.adapters.apache import servers as apache
    from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, release_of

    release = release_of(line)
    try:
        names = apache.name_server(release, folder)
        broker = apache.broker(release, folder, names.address, jvm=(*apache.SMALL_JVM, *_ROOM))
        with apache.running(names, broker):
            _wait_for_first_sample(broker.address.host, broker.address.port)
            yield [Address.parse(str(names.address))]
    except (ApacheMissingError, apache.ApacheServerError) as error:
        raise ServersError(str(error)) from None


def _wait_for_first_sample(host: str, port: int) -> None:
    """4.9.5 fails when it is asked for its runtime info before it has counted for the first time."""
    address = load.Address(host, port)
    for _ in range(_SAMPLE_TRIES):
        try:
            asyncio.run(load.ask(address, _RUNTIME_INFO, {}))
        except load.LoadError as error:
            refusal = error
            time.sleep(0.1)
        else:
            return
    raise ServersError(f"{host}:{port}: no runtime info after {_SAMPLE_TRIES} tries: {refusal}")
