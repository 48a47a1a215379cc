"""Compares what was observed during attacks with the catalogue; each function raises Finding."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mqproof.fuzz.target import Finding

Checked = Counter[str]

BODY_BYTES_MAX: Final = 32 << 20
ANSWER_BYTES_MAX: Final = 64 << 20
_SUCCESS: Final = 0


@dataclass(frozen=True, slots=True)
class Use:
    """The use of one resource of a server, and its limits."""

    name: str
    total: int
    of_address: int
    """The most that one address uses."""
    of_connection: int
    limits: tuple[int, int, int]
    """The limits of the total, of an address and of a connection."""
    spare: int
    """What is allowed beyond the limits: every connection may always have a little."""


def fields_within_limits(what: str, code: int | None, *, is_closed: bool, checked: Checked) -> None:
    """Check TRUST-11: a value beyond its limit is refused. Without an answer, `code` is None."""
    checked["FieldsWithinLimits"] += 1
    if code == _SUCCESS:
        raise Finding("FieldsWithinLimits", f"{what}: SUCCESS, a refusal expected")
    if code is None and not is_closed:
        raise Finding("FieldsWithinLimits", f"{what}: neither an answer nor a closed connection")


def shares_kept(uses: Iterable[Use], checked: Checked) -> None:
    """Check TRUST-12: no use of a resource exceeds its total, or the share of an address or connection."""
    for use in uses:
        checked["SharesKept"] += bool(use.total)
        used = (use.total, use.of_address, use.of_connection)
        for owner, amount, most in zip(("all", "an address", "a connection"), used, use.limits, strict=True):
            if amount > most + use.spare:
                raise Finding("SharesKept", f"{amount} {use.name} of {owner}, at most {most} allowed")


def others_served(what: str, problem: str, checked: Checked) -> None:
    """Check TRUST-12: an honest client is served during the attacks. `problem` says why it is not."""
    checked["SharesKept"] += 1
    if problem:
        raise Finding("SharesKept", f"{what}: {problem}")


def permission_required(what: str, code: int | None, checked: Checked) -> None:
    """Check TRUST-13: no request without the permission is answered with SUCCESS."""
    checked["PermissionRequired"] += 1
    if code == _SUCCESS:
        raise Finding("PermissionRequired", f"{what}: SUCCESS, a refusal expected")


def stranger_not_counted(name: str, *, is_on_slave: bool, streamed_bytes: int, checked: Checked) -> None:
    """Check TRUST-1: a send that was answered with SEND_OK is on the slave, and strangers receive no log."""
    checked["StrangerNotCounted"] += 1
    if not is_on_slave:
        raise Finding("StrangerNotCounted", f"{name} was answered SEND_OK, and the slave does not have it")
    if streamed_bytes:
        raise Finding("StrangerNotCounted", f"a stranger received {streamed_bytes} bytes of the log")


def bodies_bounded(answers: Sequence[Sequence[tuple[int, int]]], expected: range, checked: Checked) -> None:
    """Check TRUST-14. An answer has the queue offset and the size of the body of each message."""
    offsets = [offset for answer in answers for offset, _ in answer]
    checked["BodiesBounded"] += bool(offsets)
    if offsets != list(expected):
        raise Finding("BodiesBounded", f"a consumer received the offsets {offsets}, {expected} expected")
    for answer in answers:
        largest, whole = max(size for _, size in answer), sum(size for _, size in answer)
        if largest > BODY_BYTES_MAX or whole > ANSWER_BYTES_MAX:
            raise Finding("BodiesBounded", f"an answer of {whole} bytes, with a body of {largest} bytes")


def no_acked_lost(sent: Mapping[str, bytes], kept: Mapping[str, bytes], where: str, checked: Checked) -> None:
    """Check DELIV-1: each message that was answered with SEND_OK is there, with its body."""
    checked["NoAckedLost"] += bool(sent)
    for name, body in sent.items():
        if name not in kept:
            raise Finding("NoAckedLost", f"{name} was answered SEND_OK; {where} does not have it")
        if kept[name] != body:
            raise Finding("NoAckedLost", f"{name} was altered at {where}")
