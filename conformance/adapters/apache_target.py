"""An Apache broker as a target of the flush suite.

It is started for the run, and killed, stopped or frozen during the run.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, release_of
from mqproof.conformance.adapters.apache.fault_controls import of_broker
from mqproof.conformance.adapters.apache.servers import ApacheServerError, broker, name_server, running
from mqproof.conformance.adapters.remoting import RemotingTarget, read_flush_mode
from mqproof.conformance.engine.targets import APACHE, TargetError
from mqproof.conformance.suites.flush.target import Target
from mqproof.impl.runtime.network import Address


@contextmanager
def targets(name: str) -> Iterator[Callable[[], Target]]:
    """Yield the factory of the target `apache:LINE`; all examples share one name server and one broker.

    Raises:
        UnknownTargetError: there is no such release. TargetError: the servers did not start.
    """
    release = release_of(name.removeprefix(APACHE))
    with tempfile.TemporaryDirectory(prefix="mqproof-apache-") as folder, ExitStack() as stack:
        try:
            names = name_server(release, Path(folder))
            server = broker(release, Path(folder), names.address)
            stack.enter_context(running(names, server))
        except (ApacheMissingError, ApacheServerError) as error:
            raise TargetError(str(error)) from None
        mode = read_flush_mode(Address(*names.address))
        yield lambda: RemotingTarget(names.address, name, of_broker(server), mode)
