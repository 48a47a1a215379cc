"""The operations that an implementation must offer to be tested against the specification.

A target is one broker and one client of it, driven step by step by one caller. Implement `Target` for your
broker, pass a factory of it to `mqproof.conformance.engine.suite_run.run_suite`, and you get a verdict for
every invariant. Leave out of `capabilities` the operations that your broker does not offer. Invariants that
need them are reported as not tested, not as held.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class RestartFailedError(Exception):
    """The broker does not start on the data that its last stop left.

    The message is one line with the reason.
    """


class Fault(StrEnum):
    """The faults that may disturb a running broker, from `disturb` to `calm`.

    Each is a capability of the same name.
    """

    FREEZE = "freeze"  # SIGSTOP; calm is SIGCONT
    ISOLATE = "isolate"  # nothing reaches the broker, and nothing leaves it
    LOSE_REQUESTS = "lose_requests"  # a one-way partition: nothing reaches the broker
    LOSE_ANSWERS = "lose_answers"  # the other direction: its answers are lost
    CUT = "cut"  # connections are closed instead of an answer
    DELAY = "delay"  # requests and answers take longer
    SLOW_DISK = "slow_disk"  # every fsync takes longer
    FULL_DISK = "full_disk"  # no file can be created
    CLOCK_BACK = "clock_back"  # the broker's wall clock is set back by a minute; calm sets it right again


class Capability(StrEnum):
    """The optional operations of a target, beyond sending and pulling."""

    FLUSH_MODE = "flush_mode"  # `open` starts a broker in the requested flush mode
    SYNC_FLUSH = "sync_flush"  # without FLUSH_MODE: the broker is in this mode, whatever is requested
    ASYNC_FLUSH = "async_flush"  # the same for the other mode
    SIMULATED = "simulated"  # time passes only while nothing else happens, so that no answer is slow
    COMMIT_OFFSET = "commit_offset"  # `commit_offset` and `query_offset`
    ABANDON = "abandon"  # `abandon`: close the connection before the answer
    KILL = "kill"  # `kill`
    OS_CRASH = "os_crash"  # `crash_os`
    POWER_LOSS = "power_loss"  # `lose_power`
    CLEAN_RESTART = "clean_restart"  # `shutdown`
    SYNC_FAILURE = "sync_failure"  # `fail_syncs`
    FREEZE = "freeze"  # `disturb` and `calm`, with this fault and those below
    ISOLATE = "isolate"
    LOSE_REQUESTS = "lose_requests"
    LOSE_ANSWERS = "lose_answers"
    CUT = "cut"
    DELAY = "delay"
    SLOW_DISK = "slow_disk"
    FULL_DISK = "full_disk"
    CLOCK_BACK = "clock_back"


@dataclass(frozen=True, slots=True)
class Setup:
    """The setup of one run: a broker without messages, one topic, `queues` queues, and one consumer group."""

    flush_mode: str
    """SYNC_FLUSH | ASYNC_FLUSH; not binding without Capability.FLUSH_MODE."""
    queues: int = 1
    seed: int = 0
    """The seed of all random choices inside the target."""
    topic: str = "conform"
    group: str = "conform_group"


class Outcome(StrEnum):
    OK = "ok"  # stored, with one of the stored statuses
    FAILED = "failed"  # certainly not stored, now or later
    INDETERMINATE = "indeterminate"  # unknown: no answer, or an answer that leaves it open


@dataclass(frozen=True, slots=True)
class Sent:
    outcome: Outcome
    status: str = ""
    """SEND_OK | FLUSH_DISK_TIMEOUT | FLUSH_SLAVE_TIMEOUT | SLAVE_NOT_AVAILABLE when ok, else a free text."""
    queue_offset: int = -1
    """The offset of the stored message, -1 when not ok."""
    under_way: bool = False
    """For an indeterminate send: it may still be stored, at any time until the broker stops."""


class PullStatus(StrEnum):
    FOUND = "FOUND"
    NO_NEW = "NO_NEW"  # the offset is the end of the queue
    OFFSET_MOVED = "OFFSET_MOVED"  # beyond the end; next_offset is the offset to read on from


@dataclass(frozen=True, slots=True)
class PulledMessage:
    """A message as the broker returned it. If it cannot be read as a message, msg_id and topic are empty."""

    msg_id: str
    body: bytes
    topic: str
    queue_id: int
    queue_offset: int
    stored_ms: int = 0
    """The time at which the broker stored the message, by its clock; 0 if the target does not report it."""


@dataclass(frozen=True, slots=True)
class Pulled:
    status: PullStatus
    messages: tuple[PulledMessage, ...]
    next_offset: int
    min_offset: int
    max_offset: int
    """One more than the last readable offset, as reported in this answer."""


class Target(Protocol):
    """One broker under test. Every call returns when its effect is known; nothing happens between two calls.

    The order of calls: `open`, once; then any of a running broker; after `kill`, `crash_os`, `lose_power` or
    `shutdown` only `crash_os`, `lose_power` and `restart`; `close` at any time, last. Every call may raise
    TargetError. Methods of capabilities that the target does not declare are never called.
    """

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The optional operations that the target offers."""
        ...

    def open(self, setup: Setup) -> None:
        """Start a broker on which the topic has no message and the group no offset."""
        ...

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> Sent:
        """Send once, without retries, with `msg_id` as the unique key, and wait for the answer."""
        ...

    def abandon(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> None:
        """Send without waiting for the answer.

        The broker may store the message until the next call of another method has returned, and not after
        that.
        """
        ...

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> Pulled:
        """Pull once, without waiting for messages to arrive."""
        ...

    def commit_offset(self, topic: str, queue_id: int, offset: int) -> bool:
        """Store the group's offset. Return True if the broker accepted it, False if it refused."""
        ...

    def query_offset(self, topic: str, queue_id: int) -> int:
        """Return the group's offset at the broker; 0 if it has none."""
        ...

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Return the offset of the first message in the queue."""
        ...

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Return the offset of the next message of the queue."""
        ...

    def kill(self) -> None:
        """Kill the broker with SIGKILL: the process ends, and the page cache stays."""
        ...

    def crash_os(self, seed: int) -> None:
        """Crash the machine: any part of the unsynced data may be lost, and the last write may be torn."""
        ...

    def lose_power(self) -> None:
        """Crash the machine, keeping exactly the synced data."""
        ...

    def shutdown(self) -> None:
        """Stop the broker cleanly."""
        ...

    def restart(self) -> None:
        """Start the broker on the remaining data. Returns when the broker serves again.

        Raises:
            RestartFailedError: the broker does not serve; only `close` is called after that.
        """
        ...

    def fail_syncs(self) -> None:
        """Make every fsync report an error and keep nothing, until the broker stops."""
        ...

    def disturb(self, fault: Fault) -> None:
        """Start the fault. Only `send` and `abandon` are called until `calm`.

        A send whose answer does not come in time is INDETERMINATE and under way. The target may wait less
        time for it than usual.
        """
        ...

    def calm(self) -> None:
        """End the fault. Returns when the broker serves again."""
        ...

    def close(self) -> None:
        """Stop the broker and free all resources. Works in any state, and more than once."""
        ...


class WireOnly:
    """A base class for targets that cannot be stopped or disturbed; its methods are never called."""

    def abandon(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError

    def crash_os(self, seed: int) -> None:
        raise NotImplementedError

    def lose_power(self) -> None:
        raise NotImplementedError

    def shutdown(self) -> None:
        raise NotImplementedError

    def restart(self) -> None:
        raise NotImplementedError

    def fail_syncs(self) -> None:
        raise NotImplementedError

    def disturb(self, fault: Fault) -> None:
        raise NotImplementedError

    def calm(self) -> None:
        raise NotImplementedError
