"""Checks that a broker serves other clients: it stores their messages, and returns them unchanged."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from mqproof.conformance.hostile.attack import Names, Scene, Signer
from mqproof.conformance.hostile.attack_requests import pull_fields, send_fields, signed
from mqproof.conformance.hostile.seen import Victim
from mqproof.conformance.wire.frames import Frame, MalformedError, encode
from mqproof.conformance.wire.server_connection import (
    Address,
    ClosedError,
    Connection,
    SilentError,
    UnreachableError,
)

_SUCCESS: Final = 0
_STORED: Final = frozenset({0, 10, 11, 12})
"""The response codes that mean that the message is stored."""
_PAUSE_S: Final = 0.05
OTHER_SOURCE: Final = "127.0.0.2"
"""Another address of this host, from which the clients that must be served connect, if possible."""
_RECORD_HEAD: Final = 1 << 10
"""More bytes than the fields of a record take, besides its body."""

_TROUBLE: Final = (ClosedError, SilentError, MalformedError, UnreachableError)


class Service:
    """A producer and a consumer that must be served, whatever the attacker does."""

    def __init__(self, victim: Victim, names: Names, scene: Scene, seconds_max: float) -> None:
        self.names = names
        self.sends: list[int] = []
        """The response codes of the sends since the last call of `begin`."""
        self.next_offset = 0
        """The queue offset after the last message."""
        self._victim = victim
        self._signer = victim.administrator
        # Only a master without a slave stores a message without SUCCESS.
        self._stored = _STORED if scene is Scene.SLAVES else frozenset({_SUCCESS})
        self._seconds_max = seconds_max * (3 if scene is Scene.MEMBERS else 1)  # it may elect meanwhile
        self._previous: tuple[int, bytes] | None = None
        """The queue offset and the body of an earlier message."""

    def begin(self) -> None:
        self.sends = []

    def check(self) -> str:
        """Send a message and read it and an earlier one back; return the problem, or an empty text.

        A SUCCESS for a message that cannot be read is a false one.
        """
        deadline = time.monotonic() + self._seconds_max
        while True:
            problems = []
            for address in self._victim.addresses:
                problem = self._served_by(address, deadline)
                if not problem:
                    return ""
                problems.append(problem)
            is_final = any("cannot be read" in problem for problem in problems)
            if is_final or len(self._victim.addresses) == 1 or time.monotonic() > deadline:
                return "; ".join(problems)
            time.sleep(_PAUSE_S * 4)  # a group elects its master

    def _served_by(self, address: Address, deadline: float) -> str:
        try:
            with _connected_as_another(address, self._seconds_max) as connection:
                return self._sent_and_read(connection, deadline)
        except _TROUBLE as error:
            return str(error)

    def _sent_and_read(self, connection: Connection, deadline: float) -> str:
        body = secrets.token_hex(8).encode()
        sent = self._ask(connection, Frame(10, 1, fields=send_fields(self.names), body=body))
        if sent.code not in self._stored:
            return f"a send returned {sent.code}: {sent.remark}"
        self.sends.append(sent.code)
        offset, message_id = int(sent.fields.get("queueOffset", 0)), sent.fields.get("msgId", "")
        self.next_offset = offset + 1
        if len(message_id) >= 32:
            place = int(message_id[-16:], 16)
            self.names = replace(
                self.names,
                commit_offset=place,
                log_end=place + _RECORD_HEAD,
                next_offset=self.next_offset,
            )
        for at, expected in filter(None, ((offset, body), self._previous)):
            if problem := self._unread(connection, at, expected, deadline):
                return problem
        self._previous = offset, body
        return ""

    def _unread(self, connection: Connection, offset: int, body: bytes, deadline: float) -> str:
        """Return why a message cannot be read, or an empty text."""
        while True:
            fields = pull_fields(self.names, queueOffset=offset, maxMsgNums=1)
            answer = self._ask(connection, Frame(11, 2, fields=fields))
            if answer.code == _SUCCESS and body in answer.body:
                return ""
            if time.monotonic() > deadline:
                return f"a message that was acknowledged cannot be read: code {answer.code}"
            time.sleep(_PAUSE_S)

    def _ask(self, connection: Connection, frame: Frame) -> Frame:
        connection.write(encode(self._signed(frame, self._signer)))
        return connection.answer(frame.opaque)

    @staticmethod
    def _signed(frame: Frame, signer: Signer | None) -> Frame:
        return frame if signer is None else signed(frame, signer)


@contextmanager
def _connected_as_another(address: Address, seconds_max: float) -> Iterator[Connection]:
    """Yield a connection from another address than the attacker's, if this host has another one."""
    source = OTHER_SOURCE if address.host == "127.0.0.1" else ""
    try:
        connection = Connection(address, seconds_max, source)
    except UnreachableError:
        connection = Connection(address, seconds_max)
    try:
        yield connection
    finally:
        connection.close()
