"""One client's connection to the proxy, and the connection to the server that it stands for.

Frames pass as the bytes that arrived. A frame is decoded only if a fault acts on it, or if its answer has
addresses or offsets that the proxy changes.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from mqproof.impl.chaos.capture import CaptureWriter, Injected, Recorded
from mqproof.impl.chaos.committed_offsets import OffsetKey
from mqproof.impl.chaos.draws import Draws, Firing, Subject
from mqproof.impl.chaos.effects import NEEDS_FIRST, ON_ANSWER, ON_REQUEST, OnAnswer
from mqproof.impl.chaos.fault_table import FROM_BROKER, POINTS, Point
from mqproof.impl.chaos.frame_head import Head, Place, command_of, frame_of, frames_in, head_of
from mqproof.impl.chaos.held_answers import HeldAnswers
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.frame import FrameError
from mqproof.impl.remoting.headers import PULL_COMMITS_OFFSET
from mqproof.impl.runtime.network import Address, Connection, Network

_log = logging.getLogger(__name__)

CONNECT_S: Final = 3.0
CLOSE_S: Final = 5.0
"""How long a closing connection may wait for a client that does not read."""
PENDING_MAX: Final = 65_535
"""The most requests of a connection whose answers the proxy will look at. Further ones pass unchanged."""
GROUPS_MAX: Final = 1000
STALE_S: Final = 60.0
"""How old an answer may be that is given again. ROUTE-3 permits less than the expiry of a broker, 120 s."""
_NOTHING: Final = b""


class _CutError(Exception):
    """The connection is to be closed here."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A request whose answer is looked at."""

    point: Point | None
    request: Command
    subject: Subject
    firing: Firing | None


class Side(Protocol):
    """The port that accepted the connection: what its connections share."""

    @property
    def name(self) -> str:
        """The name of the broker; empty for a name server."""
        ...

    @property
    def upstream(self) -> Address: ...
    @property
    def network(self) -> Network: ...
    @property
    def draws(self) -> Draws: ...
    @property
    def capture(self) -> CaptureWriter | None: ...
    @property
    def tracks_offsets(self) -> bool:
        """Whether the commits of groups are to be reported."""
        ...

    def answered(self, code: int, answer: Command, resume: Callable[[Command], None]) -> Command | None:
        """Return an answer with addresses as the client is to see it; or None, and call `resume` with it."""
        ...

    def members(self, firing: Firing | None, group: str, answer: Command) -> Command: ...
    def committed(self, key: OffsetKey, offset: int, *, only_forward: bool) -> None: ...
    def committed_as_seen(self, key: OffsetKey) -> int | None: ...
    def act(self, firing: Firing) -> bool:
        """Restart or switch the broker, if that is what the fault does. Returns whether it was."""
        ...

    def memory(self, subject: Subject) -> "Memory": ...
    def injected(self, firing: Firing, connection: int) -> None: ...
    def forget(self, connection: "RelayedConnection") -> None: ...


@dataclass(slots=True)
class Memory:
    """Earlier answers of one stream, for the faults that use them."""

    last: Command | None = None
    _first: Command | None = None
    _since_s: float = 0.0

    def first(self, now_s: float) -> Command | None:
        """Return the first answer, unless it is too old to be given again."""
        return self._first if now_s - self._since_s <= STALE_S else None

    def keep(self, answer: Command, now_s: float) -> None:
        if self.first(now_s) is None:
            self._first, self._since_s = answer, now_s
        self.last = answer


ROUTE_CODES: Final = frozenset({RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_BROKER_CLUSTER_INFO})
_numbers: Final = itertools.count(1)


class RelayedConnection:
    """A client, and the server behind the port it connected to."""

    def __init__(self, side: Side, client: Connection, connection: int) -> None:
        self._side = side
        self._client = client
        self._server: Connection | None = None
        self.number = connection
        self._from_client = bytearray()
        self._from_server = bytearray()
        self._pending: dict[int, _Pending] = {}
        self._copies: set[int] = set()
        """The opaque numbers of repeated requests, whose answers the client does not get."""
        self._held = HeldAnswers(self._to_client)
        self.groups: set[str] = set()
        """The groups whose members this client queries."""
        self.is_open = True
        client.pause_reading()
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    # The two ends.

    async def _connect(self) -> None:
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._side.network.connect(self._side.upstream, self._connected)
        except (OSError, TimeoutError) as error:
            _log.warning("no connection to %s: %s", self._side.upstream, error or "no answer")
            self.close()
            return
        if self.is_open:
            self._client.resume_reading()
            self.received_from_client(b"")
        elif self._server is not None:
            self._server.abort()

    def _connected(self, server: Connection) -> "_ServerSide":
        self._server = server
        return _ServerSide(self)

    def close(self) -> None:
        """Close both connections. What was passed on before still arrives."""
        if not self.is_open:
            return
        self.is_open = False
        self._held.drop()
        if not self._connecting.done() and self._connecting is not asyncio.current_task():
            self._connecting.cancel()
        # Answers that were passed on before reach the client: they are in the capture.
        self._client.close()
        asyncio.get_running_loop().call_later(CLOSE_S, self._client.abort)
        if self._server is not None:
            self._server.close()
        self._side.forget(self)

    def pause_server(self, is_paused: bool) -> None:
        if self._server is not None:
            (self._server.pause_reading if is_paused else self._server.resume_reading)()

    def pause_client(self, is_paused: bool) -> None:
        (self._client.pause_reading if is_paused else self._client.resume_reading)()

    def received_from_client(self, data: bytes) -> None:
        self._from_client += data
        if self._server is not None:
            self._pass(self._from_client, self._request, self._server.write)

    def received_from_server(self, data: bytes) -> None:
        self._from_server += data
        self._pass(self._from_server, self._response, self._client.write)

    def _pass(
        self,
        buffer: bytearray,
        look: Callable[[bytearray, Place], bytes | None],
        write: Callable[[bytes], None],
    ) -> None:
        """Pass the whole frames in the buffer. `look` returns the bytes that replace a frame, or None."""
        if not self.is_open:
            return
        begin = end = 0
        try:
            for place in frames_in(buffer):
                instead = look(buffer, place)
                end = place.end
                if instead is not None:
                    if place.start > begin:
                        write(bytes(buffer[begin : place.start]))
                    if instead:
                        write(instead)
                    begin = end
            if end > begin:
                write(bytes(buffer[begin:end]))
        except _CutError:
            if end > begin:
                write(bytes(buffer[begin:end]))
            self.close()
        except (FrameError, ValueError) as error:
            _log.warning("closing the connection of %s: %s", self._client.remote, error)
            self.close()
        del buffer[:end]

    # Requests of the client.

    def _request(self, buffer: bytearray, place: Place) -> bytes | None:
        head = head_of(buffer, place, with_fields=True)
        capture, point, draws = self._side.capture, POINTS.get(head.code), self._side.draws
        if capture is not None:
            capture.write(Recorded.TO_SERVER, self.number, bytes(buffer[place.start : place.end]))
        if head.is_response or point in FROM_BROKER:
            return None
        firing, subject = None, None
        if point is not None and draws.has(point):
            subject = head.about(self._side.name)
            firing = draws.draw(point, subject)
        tracks = self._side.tracks_offsets and point in (Point.COMMIT, Point.PULL)
        if firing is None and not tracks and not self._is_looked_at(head, point):
            return None
        subject = subject or head.about(self._side.name)
        request = command_of(bytes(buffer[place.start : place.end]))
        if point is Point.MEMBERS and len(self.groups) < GROUPS_MAX:
            self.groups.add(head.group)
        return self._decoded(head, point, subject, request, firing)

    def _is_looked_at(self, head: Head, point: Point | None) -> bool:
        """Return whether the answer may be changed although no fault acts on this request."""
        if head.code in ROUTE_CODES:
            return True
        if point is None:
            return False
        if point is Point.QUERY_OFFSET:
            return self._side.tracks_offsets
        if point is Point.MEMBERS:
            return self._side.draws.has(point)
        return self._side.draws.remembers(point)

    def _decoded(
        self, head: Head, point: Point | None, subject: Subject, request: Command, firing: Firing | None
    ) -> bytes | None:
        if firing is not None and self._side.act(firing):
            self._side.injected(firing, self.number)
            raise _CutError
        instead: bytes | None = None
        if firing is not None and (decide := ON_REQUEST.get(firing.name)) is not None:
            effect = decide(firing, request, self._side.memory(subject).last)
            if effect is None:
                self._side.draws.had_no_effect(firing)
            else:
                self._side.injected(firing, self.number)
                if effect.cuts:
                    raise _CutError
                if effect.answer is not None:
                    self._to_client(frame_of(effect.answer))
                    return _NOTHING
                if effect.vanishes:
                    return _NOTHING
                request = effect.replaced or request
                instead = frame_of(request) if effect.replaced is not None else None
                if effect.copies > 1:
                    instead = frame_of(request) + self._copy(request)
            firing = None
        self._note_commit(point, request, subject)
        is_used = firing is not None or self._is_looked_at(head, point)
        if is_used and not head.is_oneway and len(self._pending) < PENDING_MAX:
            self._pending[head.opaque] = _Pending(point, request, subject, firing)
        return instead

    def _copy(self, request: Command) -> bytes:
        opaque = -(next(_numbers) & 0x3FFF_FFFF) - 1
        self._copies.add(opaque)
        frame = frame_of(msgspec.structs.replace(request, opaque=opaque))
        if self._side.capture is not None:
            self._side.capture.write(Recorded.TO_SERVER, self.number, frame)
        return frame

    def _note_commit(self, point: Point | None, request: Command, subject: Subject) -> None:
        if not self._side.tracks_offsets or point not in (Point.COMMIT, Point.PULL):
            return
        fields = request.fields
        offset = fields.get("commitOffset", "")
        flags = fields.get("sysFlag", "")
        if point is Point.PULL and not (flags.isdecimal() and int(flags) & PULL_COMMITS_OFFSET):
            return
        if offset.isascii() and offset.isdecimal():
            key = OffsetKey(subject.group, subject.topic, subject.queue)
            only_forward = fields.get("onlyForward", "").lower() == "true"
            self._side.committed(key, int(offset), only_forward=only_forward)

    # Answers, and requests of the broker.

    def _response(self, buffer: bytearray, place: Place) -> bytes | None:
        head = head_of(buffer, place, with_fields=False)
        if not head.is_response:
            return self._request_of_broker(buffer, place)
        if head.opaque in self._copies:
            self._copies.discard(head.opaque)
            return _NOTHING
        pending = self._pending.pop(head.opaque, None) if self._pending else None
        if pending is None:
            self._captured(buffer, place)
            self._held.passed()
            return None
        frame = bytes(buffer[place.start : place.end])
        self._answer(pending, command_of(frame), frame)
        return _NOTHING

    def _request_of_broker(self, buffer: bytearray, place: Place) -> bytes | None:
        head = head_of(buffer, place, with_fields=True)
        point, draws = POINTS.get(head.code), self._side.draws
        frame = bytes(buffer[place.start : place.end])
        firing = None
        if point is not None and point in FROM_BROKER and draws.has(point):
            firing = draws.draw(point, head.about(self._side.name))
        if firing is None:
            self._captured(buffer, place)
            return None
        request = command_of(frame)
        effect = ON_REQUEST[firing.name](firing, request, None)
        if effect is None:
            draws.had_no_effect(firing)
            self._captured(buffer, place)
            return None
        self._side.injected(firing, self.number)
        if effect.vanishes:
            return _NOTHING
        if effect.answer is not None:
            return self._refuse_broker(effect.answer)
        if effect.delay_ms:
            self._held.hold(frame, effect.delay_ms, 0)
            return _NOTHING
        for _ in range(effect.copies):
            self._to_client(frame)
        return _NOTHING

    def _refuse_broker(self, answer: Command) -> bytes:
        if self._server is not None:
            self._server.write(frame_of(answer))
        return _NOTHING

    def _answer(self, pending: _Pending, answer: Command, frame: bytes) -> None:
        """Pass on the answer to a request that is looked at, changed by its fault."""
        if pending.request.code not in ROUTE_CODES:
            self._finish(pending, answer, frame)
            return
        changed = self._side.answered(
            pending.request.code, answer, lambda later: self._finish(pending, later, None)
        )
        if changed is not None:
            self._finish(pending, changed, frame if changed is answer else None)

    def _finish(self, pending: _Pending, answer: Command, frame: bytes | None) -> None:
        """Pass on the answer. `frame` has its bytes, if it was not changed."""
        if not self.is_open:
            return
        firing, subject, changed = pending.firing, pending.subject, answer
        if pending.point is Point.MEMBERS:
            changed = self._side.members(firing, subject.group, answer)
            if firing is not None and changed is not answer:
                self._side.injected(firing, self.number)
            firing = None
        if pending.point is Point.QUERY_OFFSET and answer.fields.get("offset") is not None:
            seen = self._side.committed_as_seen(OffsetKey(subject.group, subject.topic, subject.queue))
            if seen is not None:
                changed = msgspec.structs.replace(answer, fields={**answer.fields, "offset": str(seen)})
        effect = self._effect(pending, firing, changed)
        if effect is not None and effect.is_lost:
            raise _CutError
        changed = effect.replaced or changed if effect is not None else changed
        if frame is None or changed is not answer:
            frame = frame_of(changed)
        if effect is not None and effect.delay_ms and self._held.has_room(len(frame)):
            self._held.hold(frame, effect.delay_ms, effect.after_answers)
            return
        self._to_client(frame)
        self._held.passed()

    def _effect(self, pending: _Pending, firing: Firing | None, answer: Command) -> OnAnswer | None:
        point, draws = pending.point, self._side.draws
        memory, now_s = None, asyncio.get_running_loop().time()
        if point is not None and draws.remembers(point):
            memory = self._side.memory(pending.subject)
        effect = None
        if firing is not None and (decide := ON_ANSWER.get(firing.name)) is None:
            draws.had_no_effect(firing)  # a restart of a server that is no broker
        elif firing is not None and decide is not None:
            earlier = None
            if memory is not None:
                earlier = memory.first(now_s) if firing.name in NEEDS_FIRST else memory.last
            effect = decide(firing, pending.request, answer, earlier)
            if effect is None:
                draws.had_no_effect(firing)
            else:
                self._side.injected(firing, self.number)
        if memory is not None and answer.code == 0:
            memory.keep(answer, now_s)
        return effect

    def _captured(self, buffer: bytearray, place: Place) -> None:
        capture = self._side.capture
        if capture is not None:
            capture.write(Recorded.TO_CLIENT, self.number, bytes(buffer[place.start : place.end]))

    def _to_client(self, frame: bytes) -> None:
        if self.is_open:
            capture = self._side.capture
            if capture is not None:
                capture.write(Recorded.TO_CLIENT, self.number, frame)
            self._client.write(frame)

    def notify(self, group: str) -> None:
        """Tell the client that the members of a group changed, if it queried them."""
        if group in self.groups:
            code = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
            self._to_client(frame_of(new_request(code, {"consumerGroup": group}, oneway=True)))


class ClientSide:
    """The receiver of the client's bytes."""

    def __init__(self, relayed: RelayedConnection) -> None:
        self._relayed = relayed

    def received(self, data: bytes) -> None:
        self._relayed.received_from_client(data)

    def write_paused(self) -> None:
        self._relayed.pause_server(True)

    def write_resumed(self) -> None:
        self._relayed.pause_server(False)

    def closed(self) -> None:
        self._relayed.close()


class _ServerSide:
    """The receiver of the server's bytes."""

    def __init__(self, relayed: RelayedConnection) -> None:
        self._relayed = relayed

    def received(self, data: bytes) -> None:
        self._relayed.received_from_server(data)

    def write_paused(self) -> None:
        self._relayed.pause_client(True)

    def write_resumed(self) -> None:
        self._relayed.pause_client(False)

    def closed(self) -> None:
        self._relayed.close()


def injected_entry(firing: Firing, time_ns: int) -> Injected:
    """Return what is recorded of a fault."""
    subject = firing.subject
    return Injected(
        firing.name, subject.broker, subject.topic, subject.queue, subject.group, firing.number, time_ns
    )
