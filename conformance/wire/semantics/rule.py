"""Defines a handwritten wire case (`Rule`), and helpers that build its steps."""

from dataclasses import dataclass, replace

from mqproof.conformance.wire.model import Call, Case, Expect, Manner, Operation, Since, Step, Strength
from mqproof.conformance.wire.requests import valid
from mqproof.conformance.wire.systematic import HANDWRITTEN


@dataclass(frozen=True, slots=True)
class Rule:
    operation: Operation
    number: int
    title: str
    steps: tuple[Step, ...]
    since: Since = Since.V4_9
    strength: Strength = Strength.MUST
    source: str | None = None
    """A section of docs/reference/protocol/; the operation's, unless given."""


def case(rule: Rule) -> Case:
    operation = rule.operation
    assert rule.number >= HANDWRITTEN, rule
    return Case(
        id=f"remoting/{operation.slug}/{rule.number}",
        title=f"{operation.name} {rule.title}",
        server=operation.server,
        source=rule.source or operation.source,
        steps=rule.steps,
        since=max(rule.since, operation.since),
        strength=rule.strength,
    )


def call(operation: Operation, expect: Expect | None = None, **fields: str | None) -> Call:
    """Return the operation's valid request with changed fields, and its required answer (default SUCCESS)."""
    return Call(valid(operation, **fields), expect or Expect())


def code(*codes: int) -> Expect:
    return Expect(codes=codes)


def eventually(step: Call) -> Call:
    """Accept other answers for a while."""
    return replace(step, manner=Manner.EVENTUALLY)
