"""The report as SARIF 2.1.0: one rule per invariant, one result per witness of a violation.

Code scanners show every SARIF result as an alert, so only violations are results. Results that are unknown or
not tested become notifications of the run. At most RESULTS_MAX results are written, because scanners refuse
more. The run's properties state the total number.
"""

import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from mqproof.report.model import Report, Result, Verdict, Witness
from mqproof.report.printable import printable

RESULTS_MAX: Final = 5000
_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(report: Report) -> str:
    """Return the SARIF document as JSON text.

    A witness whose values have `file` (and `line`) is located there. Any other is located by layer and
    invariant, as if these were a file, because some scanners refuse results without a location.
    """
    violated = [result for result in report.results if result.verdict is Verdict.VIOLATED]
    total = sum(max(1, result.found, len(result.witnesses)) for result in violated)
    findings = ((result, witness) for result in violated for witness in _witnesses(result))
    names = {result.id: result.name for result in report.results}
    run = {
        "tool": {"driver": {"name": "mqproof", "rules": [_rule(*rule) for rule in names.items()]}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": _notifications(report)}],
        "results": [_result(result, witness) for result, witness in islice(findings, RESULTS_MAX)],
        "properties": {
            "title": printable(report.title),
            "violations": total,
            "violationsWritten": min(sum(1 for result in violated for _ in _witnesses(result)), RESULTS_MAX),
        },
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def fingerprint(result: Result, witness: Witness) -> str:
    """Return a hash of id, layer and the witness's values, equal for the same violation in another run."""
    values = sorted(witness.values.items()) or [("text", witness.text)]
    text = json.dumps([result.id, result.layer, values])
    return hashlib.sha256(text.encode()).hexdigest()


def _witnesses(result: Result) -> Iterator[Witness]:
    yield from result.witnesses or (Witness(result.detail or f"{result.name} is violated"),)


def _rule(rule_id: str, name: str) -> dict[str, Any]:
    return {"id": printable(rule_id), "name": printable(name), "shortDescription": {"text": printable(name)}}


def _result(result: Result, witness: Witness) -> dict[str, Any]:
    text = ": ".join(filter(None, (result.detail, witness.text)))
    text += "".join(f"\n{moment}" for moment in witness.timeline)
    text += "\n" if witness.timeline and result.replay else ""
    text += f"; replay: {result.replay}" if result.replay else ""
    return {
        "ruleId": printable(result.id),
        "level": "error",
        "message": {"text": printable(text)},
        "locations": [_location(result, witness)],
        "partialFingerprints": {"mqproof/v1": fingerprint(result, witness)},
        "properties": {printable(name): printable(value) for name, value in witness.values.items()},
    }


def _location(result: Result, witness: Witness) -> dict[str, Any]:
    name = printable(f"{result.layer}/{result.id}")
    file = witness.values.get("file", name)
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(file, errors="replace")}}
    line = witness.values.get("line", "")
    if line.isascii() and line.isdecimal() and int(line) > 0:
        physical["region"] = {"startLine": int(line)}
    return {"logicalLocations": [{"fullyQualifiedName": name}], "physicalLocation": physical}


def _notifications(report: Report) -> list[dict[str, Any]]:
    undecided = (Verdict.UNKNOWN, Verdict.NOT_TESTED)
    return [
        {
            "level": "note",
            "message": {"text": printable(f"{r.id} {r.name} ({r.layer}): {r.verdict}: {r.detail}")},
            "associatedRule": {"id": printable(r.id)},
        }
        for r in report.results
        if r.verdict in undecided
    ]
