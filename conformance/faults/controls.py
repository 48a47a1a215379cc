"""The fault controls of a broker that runs as a process: they stop, freeze or isolate it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

from mqproof.conformance.engine.fault_commands import FaultCommands, run
from mqproof.conformance.suites.flush.target import Capability


@dataclass(frozen=True, slots=True)
class Place:
    """The broker that a client found; addresses as HOST:PORT."""

    broker: str
    address: str
    name_server: str


class FaultControl(StrEnum):
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


FaultControls = Mapping[FaultControl, Callable[[Place], None]]
"""Each control returns when it is done, and raises TargetError if it fails."""

NEEDS: Final[Mapping[Capability, tuple[FaultControl, FaultControl]]] = {
    Capability.KILL: (FaultControl.KILL, FaultControl.START),
    Capability.CLEAN_RESTART: (FaultControl.STOP, FaultControl.START),
    Capability.ISOLATE: (FaultControl.ISOLATE, FaultControl.REJOIN),
    Capability.FREEZE: (FaultControl.FREEZE, FaultControl.THAW),
}


def capabilities(controls: FaultControls) -> frozenset[Capability]:
    """Return the capabilities that these controls give to a target."""
    return frozenset(capability for capability, needed in NEEDS.items() if controls.keys() >= set(needed))


def by_shell(commands: FaultCommands) -> FaultControls:
    """Return a control for each shell command that is not empty."""

    def control(option: str, template: str) -> Callable[[Place], None]:
        return lambda place: run(option, template, asdict(place))

    return {FaultControl(option): control(option, template) for option, template in commands.given()}
