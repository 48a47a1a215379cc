"""Finds the servers that the wire suite tests: running ones, or ones that are started here."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.apache.single_request import send_request
from mqproof.conformance.engine.targets import APACHE, IMPL, REMOTING, TargetError, UnknownTargetError
from mqproof.conformance.hosts import sandbox
from mqproof.conformance.hosts.processes import ClusterError, cluster
from mqproof.conformance.wire.server_connection import Address
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.runtime.network import Address as NetworkAddress

_ROOM: Final = ("-Xmx512m", "-XX:MaxDirectMemorySize=1g")
"""JVM options for enough memory: 5.5.0 takes 4 MiB outside the heap per thread, else it answers no pop."""
_SAMPLE_TRIES: Final = 600
_SAMPLE_SECONDS_MAX: Final = 10.0
EXPECTED: Final = "remoting://HOST:PORT[,HOST:PORT], impl, apache:4.9 or apache:5"


@contextmanager
def servers(target: str) -> Iterator[list[Address]]:
    """Yield the target's addresses: a name server, a broker, or both in any order. Start it if necessary.

    Raises:
        UnknownTargetError, TargetError.
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
    # The broker must not refuse requests because the machine is loaded.
    patient = folder / "broker.properties"
    patient.write_text("osPageCacheBusyTimeOutMills=60000\nfilterServerEnable=true\n", encoding="utf-8")
    with cluster(folder, "ASYNC_FLUSH") as made:
        made.broker_options = ("-c", str(patient))
        made.keeps_events = False  # a filter server has none
        try:
            made.start_name_server()
            made.start_broker()
            if sandbox.is_installed():
                broker = f"127.0.0.1:{made.broker_port}"
                made.start_server("filter-server", "filter-server", "--broker", broker)
        except ClusterError as error:
            raise TargetError(str(error)) from None
        yield [Address.parse(made.name_server)]


@contextmanager
def _apache(line: str, folder: Path) -> Iterator[list[Address]]:
    from mqproof.conformance.adapters.apache import servers as apache
    from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, release_of

    release = release_of(line)
    try:
        names = apache.name_server(release, folder)
        broker = apache.broker(release, folder, names.address, jvm=(*apache.SMALL_JVM, *_ROOM))
        with apache.running(names, broker):
            _wait_for_first_sample(broker.address)
            yield [Address.parse(str(names.address))]
    except (ApacheMissingError, apache.ApacheServerError) as error:
        raise TargetError(str(error)) from None


def _wait_for_first_sample(address: NetworkAddress) -> None:
    """Wait until the broker answers: 4.9.5 fails to return its runtime info before its first sample."""
    for _ in range(_SAMPLE_TRIES):
        answer = send_request(address, new_request(RequestCode.GET_BROKER_RUNTIME_INFO), _SAMPLE_SECONDS_MAX)
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            return
        time.sleep(0.1)
    refusal = f"code {answer.code}, {answer.remark}" if answer else "no answer"
    raise TargetError(f"{address}: no runtime info after {_SAMPLE_TRIES} tries: {refusal}")
