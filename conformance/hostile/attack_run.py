"""Sends the attacks to a broker and judges it: its answers, its service to others, its memory."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.hostile.attacks import (
    ATTACKS,
    OPAQUE,
    Attack,
    Expected,
    Names,
    pull_fields,
    send_fields,
)
from mqproof.conformance.wire.frames import Frame, MalformedError, encode
from mqproof.conformance.wire.server_connection import (
    Address,
    ClosedError,
    Connection,
    SilentError,
    UnreachableError,
    connected,
)

MEMORY_MIB_MAX: Final = 300
"""The most memory that one attack may make a broker take."""
SECONDS_MAX: Final = 20.0
_SUCCESS: Final = 0

Memory = Callable[[], int]
"""Returns the memory of the broker's process in MiB."""


@dataclass(frozen=True, slots=True)
class Judged:
    """An attack with the reasons why the broker failed; none if it withstood the attack."""

    attack: Attack
    failures: tuple[str, ...]
    seconds: float = 0.0


def run(
    address: Address,
    attacks: tuple[Attack, ...] = ATTACKS,
    memory: Memory | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    seconds_max: float = SECONDS_MAX,
) -> Iterator[Judged]:
    """Run the attacks one after the other, and yield each one judged.

    Raises:
        UnreachableError: the broker does not serve even before the first attack.
    """
    token = secrets.token_hex(4)
    names = Names(f"hostile_{token}", f"hostile_group_{token}")
    if problem := _service(address, names, seconds_max):
        raise UnreachableError(f"{address} does not serve before the first attack: {problem}")
    for number, attack in enumerate(attacks):
        progress(number, len(attacks))
        began, before = time.monotonic(), memory() if memory else 0
        failures = []
        if problem := _attacked(address, attack, names, seconds_max):
            failures.append(problem)
        if problem := _service(address, names, seconds_max):
            failures.append(f"others are not served: {problem}")
        if memory and (taken := memory() - before) > MEMORY_MIB_MAX:
            failures.append(f"the broker took {taken} MiB, at most {MEMORY_MIB_MAX} expected")
        yield Judged(attack, tuple(failures), time.monotonic() - began)


def _attacked(address: Address, attack: Attack, names: Names, seconds_max: float) -> str:
    """Attack; return what the broker should not have done on these connections, or an empty text."""
    data = attack.frames(names)
    with ExitStack() as stack:
        try:
            connections = [
                stack.enter_context(connected(address, seconds_max)) for _ in range(attack.connections)
            ]
        except UnreachableError as error:
            return str(error)
        for connection in connections[1:]:
            _write(connection, data)
        is_open = _write(connections[0], data)
        if attack.expected is Expected.ANYTHING:
            # Some of what was sent must have been read before others are served.
            time.sleep(0.2)
            return ""
        return _judged(connections[0], attack, is_open)


def _write(connection: Connection, data: bytes) -> bool:
    try:
        connection.write(data)
    except ClosedError:
        return False
    return True


def _judged(connection: Connection, attack: Attack, is_open: bool) -> str:
    expected = attack.expected
    try:
        if expected is Expected.CLOSED:
            connection.until_closed()
            return ""
        answer = connection.answer(OPAQUE)
    except ClosedError:
        return (
            "" if expected is Expected.NOT_DONE else f"the connection was closed, expected {expected.value}"
        )
    except (SilentError, MalformedError) as error:
        return f"{error}, expected {expected.value}"
    if answer.code != _SUCCESS:
        return ""
    return f"SUCCESS{'' if is_open else ' before the connection was closed'}, expected {expected.value}"


def _service(address: Address, names: Names, seconds_max: float) -> str:
    """Send a message as another client and read it back; return the problem, or an empty text.

    A SUCCESS for a message that cannot be read is a false one.
    """
    body = secrets.token_hex(8).encode()
    try:
        with connected(address, seconds_max) as connection:
            connection.write(encode(Frame(10, 1, fields=send_fields(names), body=body)))
            sent = connection.answer(1)
            if sent.code != _SUCCESS:
                return f"a send returned {sent.code}: {sent.remark}"
            offset = sent.fields.get("queueOffset", "")
            fields = pull_fields(names, queueOffset=offset)
            deadline = time.monotonic() + seconds_max
            while True:
                connection.write(encode(Frame(11, 2, fields=fields)))
                answer = connection.answer(2)
                if answer.code == _SUCCESS and body in answer.body:
                    return ""
                if time.monotonic() > deadline:
                    return f"a message that was answered with SUCCESS cannot be read: code {answer.code}"
                time.sleep(0.05)
    except (ClosedError, SilentError, MalformedError, UnreachableError) as error:
        return str(error)
