"""What an implementation must offer to be held to the specification.

A target is one broker and one client of it, driven step by step by one caller. Implement `Target` for your
broker, pass a factory of it to `mqproof.conformance.engine.suite_run.run_suite`, and you get a verdict for
every invariant. Leave out of `capabilities` what your broker cannot be made to do; it is reported as not
tested, not as held.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class RestartFailedError(Exception):
    """The broker does not come up on what the end of its last life left. One line that says why."""


class Fault(StrEnum):
    """What may disturb a broker that lives on, from `disturb` to `calm`. Each is a capability of its name."""

    FREEZE = "freeze"  # SIGSTOP; calm is SIGCONT
    ISOLATE = "isolate"  # nothing reaches the broker, and nothing comes from it
    LOSE_REQUESTS = "lose_requests"  # a partition one way: nothing reaches it
    LOSE_ANSWERS = "lose_answers"  # the other way: what it answers reaches nobody
    CUT = "cut"  # connections are closed instead of an answer
    DELAY = "delay"  # requests and answers take longer
    SLOW_DISK = "slow_disk"  # every fsync takes longer
    FULL_DISK = "full_disk"  # no file can be made


class Capability(StrEnum):
    """What a target can be asked for beyond sending and pulling."""

    FLUSH_MODE = "flush_mode"  # `open` brings up a broker in the flush mode that was asked for
    SYNC_FLUSH = "sync_flush"  # without it: the broker is known to be in this mode, whatever is asked for
    ASYNC_FLUSH = "async_flush"  # the same of the other mode
    COMMIT_OFFSET = "commit_offset"  # `commit_offset` and `query_offset`
    ABANDON = "abandon"  # `abandon`: hang up before the answer
    KILL = "kill"  # `kill`
    OS_CRASH = "os_crash"  # `crash_os`
    POWER_LOSS = "power_loss"  # `lose_power`
    CLEAN_RESTART = "clean_restart"  # `shutdown`
    SYNC_FAILURE = "sync_failure"  # `fail_syncs`
    FREEZE = "freeze"  # `disturb` and `calm`, by this fault and those below
    ISOLATE = "isolate"
    LOSE_REQUESTS = "lose_requests"
    LOSE_ANSWERS = "lose_answers"
    CUT = "cut"
    DELAY = "delay"
    SLOW_DISK = "slow_disk"
    FULL_DISK = "full_disk"


@dataclass(frozen=True, slots=True)
class Setup:
    """One run: a broker without messages, one topic, queues 0 to `queues` - 1, one consumer group."""

    flush_mode: str
    """SYNC_FLUSH | ASYNC_FLUSH; a wish without Capability.FLUSH_MODE."""
    queues: int = 1
    seed: int = 0
    """Decides everything that is left to chance inside the target."""
    topic: str = "conform"
    group: str = "conform_group"


class Outcome(StrEnum):
    OK = "ok"  # stored, with one of the stored statuses
    FAILED = "failed"  # certainly not stored, now or later
    INDETERMINATE = "indeterminate"  # nobody knows: no answer, or an answer that leaves it open


@dataclass(frozen=True, slots=True)
class Sent:
    outcome: Outcome
    status: str = ""
    """SEND_OK | FLUSH_DISK_TIMEOUT | FLUSH_SLAVE_TIMEOUT | SLAVE_NOT_AVAILABLE when ok, else words."""
    queue_offset: int = -1
    """Of the stored message, -1 when not ok."""
    under_way: bool = False
    """Of an indeterminate send: it may still be stored, at any time until the broker is down."""


class PullStatus(StrEnum):
    FOUND = "FOUND"
    NO_NEW = "NO_NEW"  # the offset is the end of the queue
    OFFSET_MOVED = "OFFSET_MOVED"  # the offset is beyond the end; next_offset is where to go on


@dataclass(frozen=True, slots=True)
class PulledMessage:
    """As the broker handed it over. What cannot be read as a message has the empty msg_id and topic."""

    msg_id: str
    body: bytes
    topic: str
    queue_id: int
    queue_offset: int


@dataclass(frozen=True, slots=True)
class Pulled:
    status: PullStatus
    messages: tuple[PulledMessage, ...]
    next_offset: int
    min_offset: int
    max_offset: int
    """One more than the last readable offset, as the broker said in this answer."""


class Target(Protocol):
    """One broker under test. Every call returns when its effect is known; nothing goes on in between.

    The order of calls: `open`, once; then any of a running broker; after `kill`, `crash_os`, `lose_power` or
    `shutdown` only `crash_os`, `lose_power` and `restart`; `close` at any time, last. Every call may raise
    TargetError. Methods of capabilities that the target does not declare are never called.
    """

    @property
    def name(self) -> str:
        """As given to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    def open(self, setup: Setup) -> None:
        """Bring up a broker on which the topic has no message and the group no offset."""
        ...

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> Sent:
        """Send once, without retries, with `msg_id` as the unique key, and wait for the answer."""
        ...

    def abandon(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> None:
        """Send and do not wait for the answer. It may be stored until the next call of another method has
        returned, and is not stored after that."""
        ...

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> Pulled:
        """Pull once, without waiting for messages to arrive."""
        ...

    def commit_offset(self, topic: str, queue_id: int, offset: int) -> bool:
        """Store the group's offset. True when the broker took it, False when it refused."""
        ...

    def query_offset(self, topic: str, queue_id: int) -> int:
        """The group's offset as the broker has it; 0 when it has none."""
        ...

    def min_offset(self, topic: str, queue_id: int) -> int: ...

    def max_offset(self, topic: str, queue_id: int) -> int: ...

    def kill(self) -> None:
        """SIGKILL: the process is gone, the page cache lives on."""
        ...

    def crash_os(self, seed: int) -> None:
        """The machine dies: of what was not synced any part may be lost, and the last write torn."""
        ...

    def lose_power(self) -> None:
        """The machine dies and keeps exactly what was synced."""
        ...

    def shutdown(self) -> None:
        """A clean exit."""
        ...

    def restart(self) -> None:
        """Start on what is left. Returns when the broker serves again.

        Raises:
            RestartFailedError: it does not; only `close` is called after that.
        """
        ...

    def fail_syncs(self) -> None:
        """From now on every fsync reports an error and keeps nothing, until the broker is down."""
        ...

    def disturb(self, fault: Fault) -> None:
        """From now on the fault disturbs the broker. Until `calm` it is only sent to: a send whose answer
        does not come in time is INDETERMINATE and under way, and need not be waited for as long as usual."""
        ...

    def calm(self) -> None:
        """End of the fault. Returns when the broker serves again."""
        ...

    def close(self) -> None:
        """End the broker and free everything. Works in any state, also twice."""
        ...


class WireOnly:
    """For targets that nobody can bring down: a base class with the methods that are never called."""

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
