"""Finds the broker that the suite hostile attacks: a running one, or one that is started here."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mqproof.conformance.engine.targets import IMPL, REMOTING, TargetError, UnknownTargetError
from mqproof.conformance.hostile.suite import Victim
from mqproof.conformance.hosts.processes import Cluster, ClusterError, cluster
from mqproof.conformance.wire.server_connection import Address

EXPECTED: Final = "remoting://HOST:PORT of a broker, or impl"


@contextmanager
def victims(target: str) -> Iterator[Victim]:
    """Yield the broker of the target. Start it if necessary.

    Raises:
        UnknownTargetError, TargetError.
    """
    if target.startswith(REMOTING):
        try:
            address = Address.parse(target.removeprefix(REMOTING))
        except ValueError as error:
            raise UnknownTargetError(f"{target!r}: {error}; the suite hostile needs {EXPECTED}") from None
        yield Victim(address)
    elif target == IMPL:
        with (
            tempfile.TemporaryDirectory(prefix="mqproof-hostile-") as folder,
            cluster(Path(folder), "ASYNC_FLUSH") as made,
        ):
            try:
                made.start_name_server()
                made.start_broker()
            except ClusterError as error:
                raise TargetError(str(error)) from None
            yield Victim(Address("127.0.0.1", made.broker_port), lambda: memory_mib(made))
    else:
        raise UnknownTargetError(f"{target!r}: the suite hostile needs {EXPECTED}")


def memory_mib(made: Cluster) -> int:
    """Return the broker's anonymous memory; mapped pages of the page cache do not count."""
    status = Path(f"/proc/{made.processes['broker'].pid}/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("RssAnon")]
    return int(line.split()[1]) // 1024
