"""The fault controls for Apache servers that were started here."""

import os
import signal
from collections.abc import Callable

from mqproof.conformance.adapters.apache.servers import ApacheServer, ApacheServerError
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.faults.controls import FaultControl, FaultControls, Place


def of_broker(server: ApacheServer) -> FaultControls:
    """Return the controls of an Apache broker that was started here."""
    return {
        FaultControl.START: _control(server.start),
        FaultControl.STOP: _control(server.stop),
        FaultControl.KILL: _control(server.kill),
        FaultControl.FREEZE: _control(lambda: os.killpg(server.pid, signal.SIGSTOP)),
        FaultControl.THAW: _control(lambda: os.killpg(server.pid, signal.SIGCONT)),
    }


def of_name_server(server: ApacheServer) -> FaultControls:
    """Return the controls of an Apache name server that was started here; freezing it isolates it."""
    return {
        FaultControl.NAMESRV_START: _control(server.start),
        FaultControl.NAMESRV_KILL: _control(server.kill),
        FaultControl.NAMESRV_ISOLATE: _control(lambda: os.killpg(server.pid, signal.SIGSTOP)),
        FaultControl.NAMESRV_REJOIN: _control(lambda: os.killpg(server.pid, signal.SIGCONT)),
    }


def _control(work: Callable[[], None]) -> Callable[[Place], None]:
    def apply(_: Place) -> None:
        try:
            work()
        except ApacheServerError as error:
            raise TargetError(str(error)) from None

    return apply
