"""Sends the attacks to a broker, and records what it did: its answers, its service to others, its memory."""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from mqproof.conformance.hostile.attack import OPAQUE, Attack, Expected, Names, Scene
from mqproof.conformance.hostile.checkers import CHECKERS
from mqproof.conformance.hostile.seen import Reading, Seen, Victim
from mqproof.conformance.hostile.service import Service
from mqproof.conformance.hostile.strange_slave import stranger
from mqproof.conformance.wire.frames import Frame, MalformedError
from mqproof.conformance.wire.server_connection import (
    Address,
    ClosedError,
    Connection,
    SilentError,
    UnreachableError,
    connected,
)

SECONDS_MAX: Final = 20.0
"""How long the run waits for one reaction of the broker."""
ATTACK_SECONDS_MAX: Final = 60.0
"""How long the run waits for the answers to one attack, however many there are."""
_SUCCESS: Final = 0
_MEMBERS_SUCCESS: Final = 200
_BUSY: Final = 2
_CLOSE_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Judged:
    """An attack with the reasons why the broker failed; none if it withstood the attack."""

    attack: Attack
    failures: tuple[str, ...]
    connections: int = 1
    is_served: bool = True
    """Whether others were served afterwards."""
    seconds: float = 0.0


def run(
    victim: Victim,
    attacks: tuple[Attack, ...],
    seconds_max: float = SECONDS_MAX,
) -> Iterator[Judged]:
    """Run attacks of one scene one after the other, and yield each one judged.

    Raises:
        UnreachableError: the broker does not serve even before the first attack.
    """
    if not attacks:
        return
    token = secrets.token_hex(4)
    names = replace(victim.known, topic=f"hostile_{token}", group=f"hostile_group_{token}")
    service = Service(victim, names, attacks[0].scene, seconds_max)
    if problem := service.check():
        where = ", ".join(map(str, victim.addresses))
        raise UnreachableError(f"{where} does not serve before the first attack: {problem}")
    if attacks[0].scene is Scene.SLAVES and _SUCCESS in service.sends:
        raise UnreachableError("a send returns SUCCESS although no slave is connected")
    for port in victim.ports:  # a port that does not exist would withstand every attack
        Connection(port, seconds_max).close()
    for attack in attacks:
        began = time.monotonic()
        seen = _attacked(victim, attack, service, seconds_max)
        failures = CHECKERS[attack.invariant](seen)
        count = attack.connections or names.connections
        is_served = not seen.during and not seen.after
        yield Judged(attack, failures, count, is_served, time.monotonic() - began)


def _attacked(victim: Victim, attack: Attack, service: Service, seconds_max: float) -> Seen:
    before = victim.memory() if victim.memory else 0
    service.begin()
    first_offset = service.next_offset
    try:
        seen = _PLAYS[attack.scene](victim, attack, service, seconds_max)
    except UnreachableError as error:
        seen = Seen(attack, during=str(error))
    after = "" if seen.during else service.check()  # a broker that serves none is judged already
    taken = victim.memory() - before if victim.memory else 0
    return replace(seen, after=after, sends=tuple(service.sends), memory_mib=taken, first_offset=first_offset)


# On the port of clients.


def _at_clients_port(victim: Victim, attack: Attack, service: Service, seconds_max: float) -> Seen:
    return _at_port(victim.addresses[0], attack, service.names, service, seconds_max)


def _at_port(address: Address, attack: Attack, names: Names, service: Service, seconds_max: float) -> Seen:
    data = attack.frames(names)
    with ExitStack() as stack:
        count = attack.connections or names.connections
        connections = [stack.enter_context(connected(address, seconds_max)) for _ in range(count)]
        # Beyond the first connection that the broker does not read, it would read none.
        closed = int(not all(_write(connection, data) for connection in connections))
        if attack.expected is Expected.ONE_CLOSED:
            closed = closed or _closed(connections, seconds_max)
            return Seen(attack, closed=closed, during=service.check())
        if attack.expected is Expected.ANYTHING:
            # The broker serves the request of the service after some of the attack.
            return Seen(attack, closed=closed, during=service.check())
        if attack.expected is Expected.CLOSED:
            seen = _closing(attack, connections[0])
        else:
            seen = _answered(attack, connections[0], _count_frames(data))
        return replace(seen, during=service.check())


def _write(connection: Connection, data: bytes) -> bool:
    """Return whether the broker took the bytes, without closing the connection."""
    try:
        connection.write(data)
    except ClosedError:
        return False
    return True


def _closed(connections: list[Connection], seconds_max: float) -> int:
    """Return how many connections the broker has closed, as soon as it is one."""
    deadline = time.monotonic() + seconds_max
    while not (closed := sum(connection.is_closed for connection in connections)):
        if time.monotonic() > deadline:
            return 0
        time.sleep(_CLOSE_POLL_S)
    return closed


def _closing(attack: Attack, connection: Connection) -> Seen:
    try:
        connection.until_closed()
    except (SilentError, MalformedError) as error:
        return Seen(attack, silence=str(error))
    return Seen(attack, closed=1)


def _answered(attack: Attack, connection: Connection, requests: int) -> Seen:
    """Read the answers up to the first one that decides, or up to the last one."""
    answers: list[int] = []
    deadline = time.monotonic() + ATTACK_SECONDS_MAX
    wanted = requests if attack.expected in (Expected.BUSY, Expected.ALL_READ) else 1
    while len(answers) < wanted and answers[-1:] != [_BUSY]:
        if time.monotonic() > deadline:
            silence = f"{wanted} answers take more than {ATTACK_SECONDS_MAX:g} s"
            return Seen(attack, tuple(answers), silence=silence)
        try:
            answers.append(_code_of(connection.answer(OPAQUE), attack.scene))
        except ClosedError:
            return Seen(attack, tuple(answers), closed=1)
        except (SilentError, MalformedError) as error:
            return Seen(attack, tuple(answers), silence=str(error))
    return Seen(attack, tuple(answers))


def _code_of(answer: Frame, scene: Scene) -> int:
    """Return the response code. Members of a group answer with a code in the body."""
    if scene is not Scene.MEMBERS or answer.code != _SUCCESS:
        return answer.code
    try:
        code = json.loads(answer.body)["code"]
    except (ValueError, LookupError, TypeError):
        return _SUCCESS
    return _SUCCESS if code == _MEMBERS_SUCCESS else int(code)


def _count_frames(data: bytes) -> int:
    at = count = 0
    while at + 4 <= len(data):
        at += 4 + int.from_bytes(data[at : at + 4], "big")
        count += 1
    return count


# On the port of slaves.


def _as_slave(victim: Victim, attack: Attack, service: Service, seconds_max: float) -> Seen:
    """Connect as slaves that acknowledge all that they receive, while others send messages."""
    data = attack.frames(service.names)
    with ExitStack() as stack:
        slaves = [
            stack.enter_context(stranger(victim.ports[0], data, attack.has_checksums, seconds_max))
            for _ in range(attack.connections)
        ]
        during = service.check()
        return Seen(attack, during=during, streamed_bytes=sum(slave.streamed_bytes for slave in slaves))


# On the port of members.


def _at_members_ports(victim: Victim, attack: Attack, service: Service, seconds_max: float) -> Seen:
    """Attack each member; the result is that of the first one that reacts wrongly."""
    seen = Seen(attack)
    for number, port in enumerate(victim.ports):
        names = replace(service.names, group=victim.known.group, member=number)
        seen = _at_port(port, attack, names, service, seconds_max)
        if CHECKERS[attack.invariant](seen):
            break
    return seen


# Through a consumer.


def _at_consumer(victim: Victim, attack: Attack, service: Service, seconds_max: float) -> Seen:
    """Store messages as the attack says, and read them with a consumer."""
    first, names = service.next_offset, service.names
    seen = _at_clients_port(victim, attack, service, seconds_max)
    # The service stored the message after those of the attack.
    messages = max(0, service.next_offset - 1 - first)
    reading = victim.read(names.topic, first, first + messages) if victim.read else Reading(())
    return replace(seen, messages=messages, reading=reading)


_PLAYS: Final = {
    Scene.BROKER: _at_clients_port,
    Scene.ACCOUNTS: _at_clients_port,
    Scene.SLAVES: _as_slave,
    Scene.MEMBERS: _at_members_ports,
    Scene.CONSUMER: _at_consumer,
}
