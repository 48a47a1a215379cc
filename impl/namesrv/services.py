"""The objects that the request processors of one name server share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.kv_config import KvConfig
from mqproof.impl.namesrv.route_table import RouteTable
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.command import Command
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.config_file import ConfigFile
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Kind


@dataclass(slots=True)
class Services:
    config: NameServerConfig
    """The current configuration. A change by an administrator replaces the whole object."""
    table: RouteTable
    kv: KvConfig
    config_file: ConfigFile
    events: EventLog | None
    started_ms: int = 0

    def emit(self, kind: Kind, broker_name: str, address: str, **more: str) -> None:
        """Record an event of a broker in the event log."""
        if self.events is not None:
            self.events.emit(kind, attrs={"broker": broker_name, "address": address, **more})


Processor = Callable[[Services, Command, Channel], Reply | Awaitable[Reply]]


def now_ms() -> int:
    """Return the time of upkeep, which never jumps and is virtual in a simulation."""
    return int(upkeep.now_s() * 1000)
