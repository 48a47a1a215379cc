"""Certificates: for the verdicts of all rules but L01, the lines of the history that prove them.

A rule has subjects: the facts of the history that need a reason, such as an acknowledged message. For `held`,
the evidence is a reason for each subject, with the index of the line that shows it. For `violated`, it is
subjects without a reason, and for `unknown` subjects that are open. The modules named `*_verifier.py` verify
certificates without this code.
"""

from collections.abc import Iterator, Mapping
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
        verdict = findings[rule].verdict
        evidence: list[tuple[Any, ...]] = []
        if verdict is Verdict.HELD:
            evidence = [
                (fact.subject, *fact.reason) for fact in _facts(history, rule, findings[rule]) if fact.reason
            ]
        elif verdict is Verdict.VIOLATED:
            without = (fact.subject for fact in _facts(history, rule, findings[rule]) if fact.reason is None)
            evidence = [(subject,) for subject in islice(without, WITHOUT_REASON_MAX)]
        elif verdict is Verdict.UNKNOWN and rule in FACTS:
            facts = ((fact.subject, fact.reason) for fact in FACTS[rule](history))
            left = ((subject, *reason) for subject, reason in facts if reason and reason[0] == OPEN)
            evidence = list(islice(left, WITHOUT_REASON_MAX))
        verdict = Verdict.UNKNOWN if verdict is Verdict.NOT_TESTED else verdict
        yield msgspec.json.encode({"rule": rule, "verdict": verdict.value, "evidence": evidence}) + b"\n"


def _facts(history: Record, rule: str, found: Finding) -> Iterator[Fact]:
    """Yield the facts of a rule, from its own search or from what the rule found."""
    if rule in FACTS:
        yield from FACTS[rule](history)
    else:
        yield from (Fact(each.subject, (each.kind, each.line)) for each in found.explained)
        yield from (Fact(tuple(witness.values.values()), None) for witness in found.witnesses)


CERTIFIED: Final = tuple(rule.id for rule in RULES if rule.id != "L01")
"""The rules that have certificates. Those without an entry in FACTS are certified by what the rule found."""
