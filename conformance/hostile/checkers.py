"""Judges what was seen during an attack. Pure functions, each with the name of its invariant.

Each returns the reasons why the invariant is violated, and none if the broker withstood the attack.
"""

from collections.abc import Callable
from typing import Final

from mqproof.conformance.hostile.attack import Expected
from mqproof.conformance.hostile.seen import Seen

MEMORY_MIB_MAX: Final = 300
"""The most memory that one attack may make a broker take."""
BODY_BYTES_MAX: Final = 32 << 20
"""The most bytes of one decompressed body."""
ANSWER_BYTES_MAX: Final = 64 << 20
"""The most bytes of the decompressed bodies of one answer."""
_SUCCESS: Final = 0
_BUSY: Final = 2

Checker = Callable[[Seen], tuple[str, ...]]


def fields_within_limits(seen: Seen) -> tuple[str, ...]:
    """TRUST-11 FieldsWithinLimits: a value beyond its limit is refused, and others are served."""
    return _reasons(_reaction(seen), *_service(seen))


def shares_kept(seen: Seen) -> tuple[str, ...]:
    """TRUST-12 SharesKept: beyond its share the attacker is refused, and others are served meanwhile."""
    return _reasons(_reaction(seen), *_service(seen))


def permission_required(seen: Seen) -> tuple[str, ...]:
    """TRUST-13 PermissionRequired: a request without the permission is refused, and others are served."""
    return _reasons(_reaction(seen), *_service(seen))


def stranger_not_counted(seen: Seen) -> tuple[str, ...]:
    """TRUST-1 StrangerNotCounted: no send is answered with SUCCESS because of a stranger's acknowledgement.

    Nothing of the log is sent to the stranger.
    """
    counted = seen.sends.count(_SUCCESS)
    return _reasons(
        f"{counted} of {len(seen.sends)} sends returned SUCCESS, but no slave has the messages"
        if counted
        else "",
        "" if seen.sends else "no send was answered",
        f"{seen.streamed_bytes} bytes of the log were sent to the stranger" if seen.streamed_bytes else "",
        *_service(seen),
    )


def bodies_bounded(seen: Seen) -> tuple[str, ...]:
    """TRUST-14 BodiesBounded: the consumer receives each message once, and holds at most the limits."""
    if seen.reading is None:
        return _reasons("the consumer read nothing", *_service(seen))
    read = [message for answer in seen.reading.answers for message in answer]
    expected = list(range(seen.first_offset, seen.first_offset + seen.messages))
    largest = max((size for _, size in read), default=0)
    most = max((sum(size for _, size in answer) for answer in seen.reading.answers), default=0)
    return _reasons(
        f"the consumer received the offsets {[offset for offset, _ in read]}, {expected} expected"
        if [offset for offset, _ in read] != expected
        else "",
        f"a body of {largest} bytes, at most {BODY_BYTES_MAX} expected" if largest > BODY_BYTES_MAX else "",
        f"an answer of {most} bytes, at most {ANSWER_BYTES_MAX} expected" if most > ANSWER_BYTES_MAX else "",
        *_service(seen),
    )


CHECKERS: Final[dict[str, Checker]] = {
    "TRUST-1": stranger_not_counted,
    "TRUST-11": fields_within_limits,
    "TRUST-12": shares_kept,
    "TRUST-13": permission_required,
    "TRUST-14": bodies_bounded,
}
"""The checkers by the id of their invariant."""


def _reasons(*reasons: str) -> tuple[str, ...]:
    return tuple(reason for reason in reasons if reason)


def _service(seen: Seen) -> tuple[str, ...]:
    memory = (
        f"the broker took {seen.memory_mib} MiB, at most {MEMORY_MIB_MAX} expected"
        if seen.memory_mib > MEMORY_MIB_MAX
        else ""
    )
    during = f"others are not served during the attack: {seen.during}" if seen.during else ""
    after = f"others are not served: {seen.after}" if seen.after else ""
    return during, after, memory


def _reaction(seen: Seen) -> str:
    """Return what the broker should not have done on the attacker's connections, or an empty text."""
    expected = seen.attack.expected
    accepted = f"SUCCESS, expected {expected.value}"
    nothing = f"{seen.silence or 'the connection is still open'}, expected {expected.value}"
    first = seen.answers[0] if seen.answers else None
    match expected:
        case Expected.REFUSED if first is None:
            return f"the connection was closed, expected {expected.value}" if seen.closed else nothing
        case Expected.REFUSED:
            return accepted if first == _SUCCESS else ""
        case Expected.NOT_DONE | Expected.ANSWERED if first is None:
            return "" if seen.closed else nothing
        case Expected.NOT_DONE:
            return accepted if first == _SUCCESS else ""
        case Expected.CLOSED | Expected.ONE_CLOSED:
            return "" if seen.closed else nothing
        case Expected.BUSY:
            is_limited = seen.closed or _BUSY in seen.answers
            return "" if is_limited else f"{len(seen.answers)} answers without SYSTEM_BUSY: {nothing}"
    return ""
