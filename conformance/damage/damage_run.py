"""Does one damage after the other to the store of a broker, and observes what its clients see."""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from mqproof.conformance.damage import store_files
from mqproof.conformance.damage.cases import NEW_TOPIC, OLD_TOPIC, Case, Moment, Store
from mqproof.conformance.damage.checkers import CHECKERS
from mqproof.conformance.damage.observation import (
    SECONDS_MAX,
    TAG,
    Record,
    Seen,
    Sent,
    Stored,
    consume,
    is_dispatched,
    parse,
    send,
    view,
    wait_for,
)
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.wire.frames import MalformedError
from mqproof.conformance.wire.server_connection import (
    Address,
    ClosedError,
    Connection,
    SilentError,
    UnreachableError,
    connected,
)

_BODY_BYTES: Final = 120
_OLD, _NEW = 6, 2
_POLL_S: Final = 0.1


class RefusedStartError(Exception):
    """The broker did not start; the message is its error."""


class Broker(Protocol):
    """A broker whose store can be damaged."""

    @property
    def store(self) -> Path:
        """The store directory."""

    @property
    def dispatch_s(self) -> float:
        """How long the dispatch of messages may make no progress after the start, or after they were stored.

        0: each message can be read when it is stored.
        """

    def start(self) -> Address:
        """Start the broker on its store, and return its address when it serves.

        Raises RefusedStartError.
        """

    def stop(self) -> None:
        """Stop the broker cleanly. Nothing happens if it does not run."""

    def report(self) -> str | None:
        """Return what the broker logged since the last call; None if there is no log to read."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Copies of a store without damage."""

    truth: tuple[Stored, ...]
    stopped: Path
    killed: Path
    """The store of a running broker: what a kill leaves."""
    older: Path


@dataclass(frozen=True, slots=True)
class Observed:
    """One case and what was seen."""

    case: Case
    moment: Moment
    seen: Seen

    @property
    def id(self) -> str:
        return f"damage/{self.case.name}/{self.moment}"

    @property
    def violations(self) -> dict[str, tuple[str, ...]]:
        found = {each: check(self.seen) for each, check in CHECKERS.items()}
        return {each: lines for each, lines in found.items() if lines}

    @property
    def verdict(self) -> str:
        """What the damage did, in words; the first that applies."""
        if self.violations:
            return "violated"
        if self.seen.refusal is not None:
            return "refused by name"
        if self.seen.passed:
            return "reported" if self.seen.report is not None else "unknown"
        if any(stored and data != stored.record.data for stored, data in self.seen.got):
            return "not covered by a checksum"
        return "repaired" if _mentions(self.seen) else "harmless"


def run(
    broker: Broker,
    chosen: Callable[[str], bool],
    cases: tuple[Case, ...],
    progress: Callable[[int, int], None],
) -> Iterator[Observed]:
    """Yield each chosen case, observed.

    Raises:
        TargetError: the broker does not serve without damage.
    """
    todo = [(case, moment) for case in cases for moment in case.moments]
    todo = [(case, moment) for case, moment in todo if chosen(f"damage/{case.name}/{moment}")]
    with prepared(broker) as made:
        for number, (case, moment) in enumerate(todo):
            progress(number, len(todo))
            yield Observed(case, moment, observe(broker, made, case, moment))


@contextmanager
def prepared(broker: Broker) -> Iterator[Prepared]:
    """Yield copies of a store with messages. Raises TargetError."""
    with tempfile.TemporaryDirectory(prefix="mqproof-damage-") as folder:
        stopped, killed, older = (Path(folder) / name for name in ("stopped", "killed", "older"))
        try:
            address = broker.start()
            _send(address, OLD_TOPIC, _OLD)
            wait_for(address, {OLD_TOPIC: _OLD})
            broker.stop()
            store_files.copy_store(broker.store, older)
            address = broker.start()
            _send(address, NEW_TOPIC, _NEW)
            found = wait_for(address, {OLD_TOPIC: _OLD, NEW_TOPIC: _NEW})
            store_files.copy_store(broker.store, killed)
        except (RefusedStartError, TimeoutError, ValueError, OSError, *_LOST) as error:
            raise TargetError(f"the broker does not serve before any damage: {error}") from None
        finally:
            broker.stop()
        store_files.copy_store(broker.store, stopped)
        broker.report()
        truth = tuple(
            Stored(topic, each) for topic, records in found.items() for _, each in sorted(records.items())
        )
        yield Prepared(truth, stopped, killed, older)


_LOST: Final = (SilentError, ClosedError, MalformedError, UnreachableError)
"""The errors of a broker that does not answer."""


def observe(broker: Broker, made: Prepared, case: Case, moment: Moment) -> Seen:
    """Damage a store and read it, with two starts and a message to each topic in between."""
    store_files.copy_store(made.killed if moment is Moment.KILLED else made.stopped, broker.store)
    seen = Seen(made.truth, files=store_files.names(broker.store))
    store = Store(broker.store, made.truth, made.older)
    logs: list[str | None] = []
    try:
        if moment is Moment.RUNNING:
            address = broker.start()
            case.damage(store)
        else:
            case.damage(store)
            address = broker.start()
        _observe(address, seen, broker.dispatch_s)
        _send_new(address, seen)
        if seen.sent and broker.dispatch_s:  # a stop must not come before the dispatch
            _wait_for_dispatch(address, broker.dispatch_s)
        broker.stop()
        logs.append(broker.report())
        _observe(broker.start(), seen, broker.dispatch_s)
    except RefusedStartError as error:
        seen.refusal = str(error)
    except _LOST as error:
        seen.passed |= {(each.topic, each.offset) for each in made.truth}
        logs.append(f"the broker does not answer: {error}")
    finally:
        broker.stop()
    logs.append(broker.report())
    seen.report = None if None in logs else "\n".join(map(str, logs))
    return seen


def _send(address: Address, topic: str, count: int) -> None:
    with connected(address, SECONDS_MAX) as connection:
        for number in range(count):
            body = f"{topic} {number} {secrets.token_hex(8)} ".encode().ljust(_BODY_BYTES, b".")
            send(connection, topic, body, number)


def _send_new(address: Address, seen: Seen) -> None:
    """Send a message to each topic, and note at which offset consumers receive it."""
    with connected(address, SECONDS_MAX) as connection:
        for opaque, topic in enumerate((OLD_TOPIC, NEW_TOPIC)):
            body = f"after the damage {secrets.token_hex(8)}".encode()
            try:
                seen.sent.append(Sent(topic, send(connection, topic, body, opaque), body))
            except ValueError:
                continue  # a broker may refuse messages after damage


def _consume(
    connection: Connection, topic: str, tag: str, wanted: set[int], dispatch_s: float
) -> dict[int, Record | bytes]:
    """Return what a consumer receives; wait some time for the offsets that must be there."""
    deadline = time.monotonic() + dispatch_s
    while True:
        got = consume(connection, topic, tag=tag)
        if wanted <= got.keys() or time.monotonic() >= deadline:
            return got
        time.sleep(_POLL_S)


def _wait_for_dispatch(address: Address, dispatch_s: float) -> None:
    with connected(address, SECONDS_MAX) as connection:
        if not is_dispatched(connection, dispatch_s):
            time.sleep(dispatch_s)


def _observe(address: Address, seen: Seen, dispatch_s: float) -> None:
    """Read all messages in three ways, as soon as the broker has dispatched what it has."""
    new = {(each.topic, each.offset) for each in seen.sent}
    with connected(address, SECONDS_MAX) as connection:
        if dispatch_s and is_dispatched(connection, dispatch_s):
            dispatch_s = 0.0
        for topic in (OLD_TOPIC, NEW_TOPIC):
            known = {each.offset: each for each in seen.truth if each.topic == topic}
            for tag in (TAG, "*"):
                wanted = {*known, *(offset for each, offset in new if each == topic)}
                got = _consume(connection, topic, tag, wanted, dispatch_s)
                for offset, found in got.items():
                    if (topic, offset) in new and isinstance(found, Record):
                        seen.received[topic, offset] = found.body
                    else:
                        data = found.data if isinstance(found, Record) else found
                        seen.got.append((known.get(offset), data))
                seen.passed |= {(topic, offset) for offset in known if offset not in got}
        for opaque, each in enumerate(seen.truth, 1000):
            viewed = view(connection, each.record.commit_offset, opaque)
            if viewed is not None and not _is_new(viewed, seen):
                seen.got.append((each, viewed))


def _is_new(data: bytes, seen: Seen) -> bool:
    """Return whether this is a new message, at the place of one that was cut."""
    found = parse(data)
    return isinstance(found, Record) and found.body in {new.body for new in seen.sent}


def _mentions(seen: Seen) -> bool:
    """Return whether the broker's log says anything about the files or topics of the store."""
    names = (*seen.files, OLD_TOPIC, NEW_TOPIC)
    return any(name in line for line in (seen.report or "").splitlines() for name in names)
