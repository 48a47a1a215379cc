"""Queues of a scripted broker that pulls read, and the offsets and messages that consumers return."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mqproof.conformance.adapters.client_calls.pulling import PULL, message, records
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    Answer,
    ScriptedServers,
    Seen,
    address,
    pulled,
    route,
)
from mqproof.impl.client.connection.session import Session
from mqproof.impl.remoting.message import Message

COMMIT, SEND_BACK, SEND, LOCK, UNLOCK, LIST = 15, 36, 310, 41, 42, 38
_HELD_S = 1.0
"""How long a pull of an empty queue is held."""


@dataclass(slots=True)
class Feed:
    """One topic `A` at broker `a`, whose consumer group `g` has one member `h@i`."""

    servers: ScriptedServers
    queues: dict[tuple[str, int], list[Message]] = field(default_factory=dict)
    sessions: int = 0

    def __post_init__(self) -> None:
        self.servers.replies[PULL] = self._pull
        self.servers.replies[30] = lambda seen: Answer(fields={"offset": str(len(self._queue(seen)))})

    def clear(self, count: int = 1) -> None:
        """Begin with a topic of `count` empty queues, and with no offsets."""
        self.queues = {("A", number): [] for number in range(count)}
        self.servers.routes = {"A": route({"a": count}), "%RETRY%g": route({"a": 1})}
        self.servers.offsets = {("%RETRY%g", 0): 0, **{("A", number): 0 for number in range(count)}}
        self.servers.members = ["h@i"]
        self.servers._scripts.clear()
        self.servers.take()

    def put(self, *bodies: bytes, queue_id: int = 0, **more: Any) -> list[Message]:
        """Add messages to a queue."""
        added = [message(body, "t", queue_id=queue_id, **more) for body in bodies]
        self.queues["A", queue_id] += added
        return added

    async def session(self) -> Session:
        self.sessions += 1
        session = Session([address("names-1")], self.servers.runtime(f"client-{self.sessions}"), "h@i")
        await session.start()
        return session

    def commits(self, seen: Sequence[Seen], topic: str = "A") -> list[tuple[int, int, bool]]:
        """Return queue, offset, and onlyForward of each commit."""
        return [
            (
                int(one.fields["queueId"]),
                int(one.fields["commitOffset"]),
                one.fields.get("onlyForward") == "true",
            )
            for one in seen
            if one.code == COMMIT and one.fields["topic"] == topic
        ]

    def _queue(self, seen: Seen) -> list[Message]:
        return self.queues.get((seen.fields["topic"], int(seen.fields["queueId"])), [])

    def _pull(self, seen: Seen) -> Answer:
        queue, begin = self._queue(seen), int(seen.fields["queueOffset"])
        end = min(len(queue), begin + int(seen.fields["maxMsgNums"]))
        if end <= begin:
            return Answer(19, pulled(0, begin, 0, len(queue)), after_s=_HELD_S)
        found = records(*queue[begin:end], queue_offset=begin, commit_offset=1000 + 100 * begin)
        return Answer(0, pulled(0, end, 0, len(queue)), found)


def queues_in(body: bytes, name: str = "mqSet") -> list[int]:
    """Return the ids of the queues in the body of a request for locks."""
    return sorted(each["queueId"] for each in json.loads(body)[name])
