"""A slave's side of replication: connects to the master, follows its log and reconnects."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from mqproof.impl.replication.config import ReplicationConfig
from mqproof.impl.replication.follow import DivergedError, Follow, SlavesLog
from mqproof.impl.replication.stream import StreamError
from mqproof.impl.runtime.network import Address, Connection, Network
from mqproof.impl.runtime.rate import Pace

_log = logging.getLogger(__name__)

_CONNECT_TIMEOUT_S: Final = 3.0
_PAUSE_S_MIN: Final = 0.5
_PAUSE_S_MAX: Final = 1.0
"""Bounds of the pause between two attempts to connect. The pause doubles after each attempt that failed.

Producers of a synchronous master wait for the next attempt, and an attempt costs little.
"""
_LOOK_S: Final = 0.2
"""The pause between two looks for the address of the master, while it is unknown."""
_LOOKS_IN_HEARTBEAT: Final = 5


async def _nothing() -> None:
    """Prepare nothing; the default of `SlaveClient.prepare`."""


@dataclass(frozen=True, slots=True)
class MasterState:
    """The connection of a slave to its master."""

    address: Address | None
    """The address on which the master accepts slaves; None while unknown."""
    is_following: bool = False
    heard_ago_s: float | None = None
    """The time since the master sent something; None without a connection."""
    reported_ago_s: float | None = None
    """The time since the slave reported its position; None without a connection."""
    bytes_per_s: int = 0


class SlaveClient:
    """The connection of one slave to its master.

    `run` follows the master until it is cancelled, or until the logs turn out to differ.
    """

    def __init__(
        self,
        network: Network,
        log: SlavesLog,
        config: ReplicationConfig,
        record_bytes_max: int,
        *,
        proves: bool = False,
    ) -> None:
        """With `proves`, the master has the peer secret, and expects proofs of the end of this log."""
        self._proves = proves
        self.master: Address | None = config.ha_master
        """The address on which the master accepts slaves; None while unknown. It may change at any time."""
        self.refused = ""
        """Why this slave has stopped following its master, in one line; empty while it still follows."""
        self.prepare: Callable[[], Awaitable[None]] = _nothing
        """Called after each connect, before the slave follows the log; raises OSError when it fails.

        It fetches data from the master. It runs again on every connection, so that the data belongs to the
        current process of the master.
        """
        self._network = network
        self._own_log = log
        self._config = config
        self._record_bytes_max = record_bytes_max
        self._receiver: _Receiver | None = None
        self._complaint = ""
        self._follows = False
        """Whether the last line in the log says that the slave follows."""

    @property
    def is_following(self) -> bool:
        """Whether the slave is connected and its log was found to agree with the master's."""
        receiver = self._receiver
        return receiver is not None and receiver.has_followed and not receiver.ended.is_set()

    def state(self) -> MasterState:
        """Return the state of the connection to the master."""
        if (receiver := self._receiver) is None:
            return MasterState(self.master)
        now_s = asyncio.get_running_loop().time()
        return MasterState(
            self.master,
            is_following=self.is_following,
            heard_ago_s=now_s - receiver.heard_s,
            reported_ago_s=now_s - receiver.reported_s,
            bytes_per_s=round(receiver.pace.rate(now_s)),
        )

    @property
    def local(self) -> Address | None:
        """This slave's end of the connection; None while there is no connection."""
        return self._receiver.local if self._receiver else None

    async def run(self) -> None:
        pause_s = _PAUSE_S_MIN
        while not self.refused:
            if self.master is None:
                await asyncio.sleep(_LOOK_S)
                continue
            followed = await self._follow(self.master)
            pause_s = _PAUSE_S_MIN if followed else min(2 * pause_s, _PAUSE_S_MAX)
            if not self.refused:
                await asyncio.sleep(pause_s)
        _log.error("this slave no longer follows its master %s: %s", self.master, self.refused)

    async def _follow(self, master: Address) -> bool:
        """Follow the master on one connection until it ends.

        Returns whether the slave received data and the logs agreed.
        """
        check, proves = self._config.log_check, self._proves
        follow = Follow(self._own_log, self._record_bytes_max, check, proves=proves)
        receiver = self._receiver = _Receiver(follow)
        try:
            follow.require_sound()
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                await self._network.connect(master, receiver.opened)
            await self.prepare()
            receiver.begin()
            await self._stay(receiver, master)
        except StreamError as error:
            self._complain(f"cannot follow master {master}: {error}")
        except (OSError, TimeoutError) as error:
            self._complain(f"cannot follow master {master}: {str(error) or 'it does not answer'}")
        finally:
            receiver.hang_up()
            self._receiver = None
        if isinstance(receiver.error, DivergedError):
            self.refused = str(receiver.error)
        elif isinstance(receiver.error, (StreamError, OSError)):
            self._complain(f"closing the connection to master {master}: {receiver.error}")
        elif receiver.error is not None:
            raise receiver.error
        return receiver.has_followed

    async def _stay(self, receiver: "_Receiver", master: Address) -> None:
        """Send periodic reports until the connection ends, the master changes, or the master is silent."""
        config = self._config
        loop = asyncio.get_running_loop()
        while not receiver.ended.is_set() and self.master == master:
            try:
                async with asyncio.timeout(config.heartbeat_ms / 1000 / _LOOKS_IN_HEARTBEAT):
                    await receiver.ended.wait()
            except TimeoutError:
                if loop.time() - receiver.heard_s > config.housekeeping_ms / 1000:
                    self._complain(f"master {master}: nothing heard for {config.housekeeping_ms} ms")
                    return
                if loop.time() - receiver.reported_s > config.heartbeat_ms / 1000:
                    receiver.report()
                if receiver.has_followed:
                    self._report_following(master)
        if receiver.error is None and self.master == master:
            self._complain(f"the connection to master {master} was lost")

    def _report_following(self, master: Address) -> None:
        """Log once that the slave follows, until something goes wrong again."""
        self._complaint = ""
        if not self._follows:
            self._follows = True
            _log.warning("this slave follows its master %s", master)

    def _complain(self, complaint: str) -> None:
        """Log a complaint, unless it is equal to the last one and nothing went well in between."""
        self._follows = False
        if complaint != self._complaint:
            self._complaint = complaint
            _log.warning("%s", complaint)


class _Receiver:
    """Receives the bytes that the master sends on one connection."""

    def __init__(self, follow: Follow) -> None:
        self.ended = asyncio.Event()
        self.error: Exception | None = None
        """Why this end closed the connection."""
        self.has_followed = False
        """Whether something was received and the logs were found to agree."""
        self._follow = follow
        self._loop = asyncio.get_running_loop()
        self.heard_s = self.reported_s = self._loop.time()
        self.pace = Pace(self.heard_s)
        self._connection: Connection | None = None

    @property
    def local(self) -> Address | None:
        return self._connection.local if self._connection else None

    def opened(self, connection: Connection) -> "_Receiver":
        """Remember the new connection; the master waits for the first report."""
        self._connection = connection
        return self

    def begin(self) -> None:
        """Send the first report, unless the connection has already ended."""
        if not self.ended.is_set():
            self.report()

    def report(self) -> None:
        assert self._connection is not None, "no connection yet"
        self.reported_s = self._loop.time()
        self._connection.write(self._follow.report())

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.abort()

    # Methods of the Receiver protocol.

    def received(self, data: bytes) -> None:
        self.heard_s = self._loop.time()
        self.pace.add(len(data), self.heard_s)
        self._take(data)

    def _take(self, data: bytes = b"") -> None:
        """Take the bytes, up to a transfer by which the log grows. Other transfers wait for the next turn.

        So the event loop sends the answer first, and the master works while this slave does.
        """
        if self.error is not None or self.ended.is_set():
            return
        assert self._connection is not None, "a network opens a connection before it delivers bytes"
        try:
            answer = self._follow.received(data)
        except Exception as error:
            self.error = error  # `_follow` handles it, or raises it if it is not expected
            self._connection.abort()
            self.ended.set()
            return
        self.has_followed = self._follow.verified
        if answer:
            self.reported_s = self._loop.time()
            self._connection.write(answer)
            self._loop.call_soon(self._take)

    def write_paused(self) -> None:
        """Do nothing: reports are few and small, so they can wait in the buffer."""

    def write_resumed(self) -> None:
        """Do nothing, since `write_paused` does nothing either."""

    def closed(self) -> None:
        self.ended.set()
