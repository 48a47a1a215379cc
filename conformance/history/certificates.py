"""Certificates: for the verdicts of all rules but L01, the lines of the history that prove them.

A rule has subjects: the facts of the history that need a reason, such as an acknowledged message. For `held`,
the evidence is a reason for each subject, with the index of the line that shows it. For `violated`, it is
subjects without a reason, and for `unknown` subjects that are open. The modules named `*_verifier.py` verify
certificates without this code.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.history.facts import FACTS, Fact
from mqproof.conformance.history.record import Record
from mqproof.conformance.history.rules import RULES
from mqproof.report.model import Verdict

WITHOUT_REASON_MAX: Final = 4
"""The maximum number of subjects in a certificate of another verdict than `held`: one is a proof."""
OPEN: Final = "open"
"""The reason of a fact that is neither held nor violated."""


def certificates(history: Record, findings: Mapping[str, Finding]) -> Iterator[bytes]:
    """Yield a line of JSON for each rule that has a verifier."""
    for rule in CERTIFIED:
        given = evidence(history, rule, findings[rule])
        yield b"".join(certificate(rule, findings[rule].verdict, [msgspec.json.encode(given)[1:-1]]))


def certificate(rule: str, verdict: Verdict, evidence_texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a certificate's line of JSON; each text has elements of its evidence, separated by commas."""
    named = Verdict.UNKNOWN if verdict is Verdict.NOT_TESTED else verdict
    yield f'{{"rule":"{rule}","verdict":"{named.value}","evidence":['.encode()
    separator = b""
    for text in filter(None, evidence_texts):
        yield separator + text
        separator = b","
    yield b"]}\n"


def regular(queues: Mapping[str, int]) -> bytes:
    """Return the certificate of the regular queues of a history in columns: their numbers of operations."""
    text = msgspec.json.encode(list(queues.items()))[1:-1]
    return b"".join(certificate("regular", Verdict.HELD, [text]))


def evidence(history: Record, rule: str, found: Finding) -> list[tuple[Any, ...]]:
    """Return what proves the verdict of a rule on a history, or on a part of one."""
    if found.verdict is Verdict.HELD:
        return [(fact.subject, *fact.reason) for fact in _facts(history, rule, found) if fact.reason]
    if found.verdict is Verdict.VIOLATED:
        without = (fact.subject for fact in _facts(history, rule, found) if fact.reason is None)
        return [(subject,) for subject in islice(without, WITHOUT_REASON_MAX)]
    if found.verdict is Verdict.UNKNOWN and rule in FACTS:
        facts = ((fact.subject, fact.reason) for fact in FACTS[rule](history))
        left = ((subject, *reason) for subject, reason in facts if reason and reason[0] == OPEN)
        return list(islice(left, WITHOUT_REASON_MAX))
    return []


def _facts(history: Record, rule: str, found: Finding) -> Iterator[Fact]:
    """Yield the facts of a rule, from its own search or from what the rule found."""
    if rule in FACTS:
        yield from FACTS[rule](history)
    else:
        yield from (Fact(each.subject, (each.kind, each.line)) for each in found.explained)
        yield from (Fact(tuple(witness.values.values()), None) for witness in found.witnesses)


CERTIFIED: Final = tuple(rule.id for rule in RULES if rule.id != "L01")
"""The rules that have certificates. Those without an entry in FACTS are certified by what the rule found."""
