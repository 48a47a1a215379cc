"""What can be done to a broker that runs as a process somewhere: by shell commands, or to one of Apache's."""

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mqproof.conformance.adapters.client import Place
from mqproof.conformance.faults.shell_commands import Controls, run
from mqproof.conformance.suites.flush.target import Capability, TargetError

if TYPE_CHECKING:
    from mqproof.conformance.adapters.apache.servers import ApacheServer


class Lever(StrEnum):
    START = "start"
    STOP = "stop"  # a clean exit
    KILL = "kill"
    ISOLATE = "isolate"
    REJOIN = "rejoin"
    FREEZE = "freeze"
    THAW = "thaw"
    NAMESRV_START = "namesrv-start"
    NAMESRV_KILL = "namesrv-kill"
    NAMESRV_ISOLATE = "namesrv-isolate"
    NAMESRV_REJOIN = "namesrv-rejoin"


Levers = Mapping[Lever, Callable[[Place], None]]
"""Each returns when it is done, and raises TargetError when it cannot be."""

NEEDS: Final[Mapping[Capability, tuple[Lever, Lever]]] = {
    Capability.KILL: (Lever.KILL, Lever.START),
    Capability.CLEAN_RESTART: (Lever.STOP, Lever.START),
    Capability.ISOLATE: (Lever.ISOLATE, Lever.REJOIN),
    Capability.FREEZE: (Lever.FREEZE, Lever.THAW),
}


def capabilities(levers: Levers) -> frozenset[Capability]:
    """What they make of a target."""
    return frozenset(capability for capability, needed in NEEDS.items() if levers.keys() >= set(needed))


def by_shell(controls: Controls) -> Levers:
    """The commands that are given."""

    def lever(option: str, template: str) -> Callable[[Place], None]:
        return lambda place: run(option, template, asdict(place))

    return {Lever(option): lever(option, template) for option, template in controls.given()}


def of_apache(server: "ApacheServer") -> Levers:
    """A broker of Apache's that was started here."""
    return {
        Lever.START: _lever(server.start),
        Lever.STOP: _lever(server.stop),
        Lever.KILL: _lever(server.kill),
        Lever.FREEZE: _lever(lambda: os.killpg(server.pid, signal.SIGSTOP)),
        Lever.THAW: _lever(lambda: os.killpg(server.pid, signal.SIGCONT)),
    }


def of_apache_names(server: "ApacheServer") -> Levers:
    """A name server of Apache's that was started here: it is cut off by being frozen."""
    return {
        Lever.NAMESRV_START: _lever(server.start),
        Lever.NAMESRV_KILL: _lever(server.kill),
        Lever.NAMESRV_ISOLATE: _lever(lambda: os.killpg(server.pid, signal.SIGSTOP)),
        Lever.NAMESRV_REJOIN: _lever(lambda: os.killpg(server.pid, signal.SIGCONT)),
    }


def _lever(work: Callable[[], None]) -> Callable[[Place], None]:
    from mqproof.conformance.adapters.apache.servers import ApacheServerError

    def pulled(_: Place) -> None:
        try:
            work()
        except ApacheServerError as error:
            raise TargetError(str(error)) from None

    return pulled
