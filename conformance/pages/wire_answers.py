"""Writes the compatibility matrix, which has the verdicts of several servers, as data and as a page.

python -m mqproof.conformance.pages.wire_answers "Apache 4.9.5=a.json" mqproof=c.json

Reads reports of `mqproof conform --suite wire --json` and writes docs/conformance/wire.json and wire.md.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from mqproof.conformance.wire.catalogue import CASES
from mqproof.conformance.wire.model import Verdict
from mqproof.conformance.wire.suite import operation_of, verdict_of
from mqproof.report.json_file import from_json
from mqproof.report.write import write_text
from mqproof.spec.checkout import expect_checkout

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "conformance"
NOT_REQUESTED: Final = "-"
"""Marks a rule that holds only since a later release."""
_DETAIL_MAX: Final = 160

_INTRODUCTION: Final = """# Wire cases: the answers of each server

`mqproof conform --suite wire` sends {cases} numbered requests to a broker and a name server, and judges the
answers. A MUST that is not met is FAILED, a SHOULD is NON-STRICT, a MAY is only reported (INFORMATIONAL).
UNIMPLEMENTED means that the server answers that it does not know the request code. `--dry-run` lists the
cases with their sources. For 4.9, only the rules that hold since 4.9 are judged.

This page is generated from the reports of three runs (the last command writes it and `wire.json`):

```
mqproof conform --target apache:4.9 --suite wire --json 4.9.json
mqproof conform --target apache:5 --suite wire --json 5.json
mqproof conform --target impl --suite wire --json ours.json
python -m mqproof.conformance.pages.wire_answers "{first}=4.9.json" "{second}=5.json" {third}=ours.json
```

To test your own servers: `mqproof conform --target remoting://HOST:PORT --suite wire`. The address is that of
a name server that knows the broker; or give both addresses, separated by a comma. The run leaves topics and
groups whose names begin with `wire_`.
"""

_EXPLAINED: Final = """## Failed cases

- QUERY_MESSAGE and VIEW_MESSAGE_BY_ID: released brokers also answer a one-way request if they find messages.
  Clients drop such an answer.
- GET_BROKER_CLUSTER_ACL_INFO: 4.9.5 does not answer at all while access control is off.

Other observations, described in docs/protocol.md: a registration without a broker's name breaks 5.5.0's list
of system topics; QUERY_CORRECTION_OFFSET deletes offsets; DELETE_SUBSCRIPTIONGROUP keeps the group on 5.5.0
unless `cleanOffset` is true. A broker of 5.5.0 with 256 MiB outside the heap does not answer pops; `apache:5`
starts it with 1 GiB.
"""

_LOOSE: Final = """## NON-STRICT

The numbers of the cases. In those that end in 0 and 1, a mandatory field that is missing, or not of its type,
is not refused. `--dry-run` shows the titles of the others.
"""


@dataclass(frozen=True, slots=True)
class Matrix:
    """The content of wire.json."""

    servers: tuple[str, ...]
    verdicts: dict[str, tuple[str, ...]]
    """Case id to the verdict at each server."""
    failures: dict[str, dict[str, str]]
    """Server to case id to the observed failure."""


def read(path: Path = FOLDER / "wire.json") -> Matrix:
    return msgspec.json.decode(path.read_bytes(), type=Matrix)


def gather(reports: dict[str, Path]) -> Matrix:
    """Read the reports and return their matrix. Raises ReportFileError, OSError."""
    seen = {}
    failures: dict[str, dict[str, str]] = {}
    for server, path in reports.items():
        results = from_json(path.read_text(encoding="utf-8"), str(path)).results
        seen[server] = {result.id: verdict_of(result) for result in results}
        failed = (result for result in results if verdict_of(result) == Verdict.FAILED)
        failures[server] = {
            result.id: result.detail.removeprefix("FAILED: ")[:_DETAIL_MAX] for result in failed
        }
    verdicts = {
        case.id: tuple(of.get(case.id, NOT_REQUESTED) for of in seen.values()) for case in CASES
    }  # fmt: skip
    return Matrix(tuple(reports), verdicts, failures)


def data(matrix: Matrix) -> str:
    """Return the text that `read` parses, with one case per line."""
    lines = (f"{json.dumps(one)}:{json.dumps(verdicts)}" for one, verdicts in matrix.verdicts.items())
    servers, failures = json.dumps(matrix.servers), json.dumps(matrix.failures, indent=1)
    separated = ",\n".join(lines)
    return f'{{"servers":{servers},\n"verdicts":{{\n{separated}}},\n"failures":{failures}}}\n'


def page(matrix: Matrix) -> str:
    """Return the page in Markdown, generated only from the data."""
    return "\n".join(_lines(matrix)) + "\n"


def _lines(matrix: Matrix) -> Iterator[str]:
    first, second, third = matrix.servers
    yield _INTRODUCTION.format(cases=len(matrix.verdicts), first=first, second=second, third=third)
    yield from _table(("all cases", *matrix.servers), [("", *map(_total, _columns(matrix)))])
    yield _EXPLAINED
    yield from _table(("case", "server", "seen"), _failures(matrix))
    yield _LOOSE
    yield from _table(("operation", *matrix.servers), _loose(matrix))
    yield "## By operation\n"
    yield from _table(("operation", *matrix.servers), _operations(matrix))


def _failures(matrix: Matrix) -> Iterator[tuple[str, ...]]:
    for server, details in matrix.failures.items():
        for case_id, detail in details.items():
            yield case_id, server, detail


def _columns(matrix: Matrix) -> Iterator[list[str]]:
    for place in range(len(matrix.servers)):
        yield [verdicts[place] for verdicts in matrix.verdicts.values()]


def _total(verdicts: Sequence[str]) -> str:
    counts = Counter(verdicts)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _by_operation(matrix: Matrix) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for case_id in matrix.verdicts:
        groups.setdefault(operation_of(case_id), []).append(case_id)
    return groups


def _loose(matrix: Matrix) -> Iterator[tuple[str, ...]]:
    """Yield the numbers of the NON-STRICT cases."""
    for operation, ids in _by_operation(matrix).items():
        cells = tuple(
            ", ".join(
                case_id.rpartition("/")[2]
                for case_id in ids
                if matrix.verdicts[case_id][place] == Verdict.NON_STRICT
            )
            for place in range(len(matrix.servers))
        )
        if any(cells):
            yield operation, *cells


def _operations(matrix: Matrix) -> Iterator[tuple[str, ...]]:
    for operation, ids in _by_operation(matrix).items():
        cells = (_total([matrix.verdicts[one][place] for one in ids]) for place in range(len(matrix.servers)))
        yield operation, *(cell or "not run" for cell in cells)


def _table(columns: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def main(arguments: Sequence[str]) -> None:
    expect_checkout("mqproof.conformance.pages.wire_answers")
    reports = dict(argument.split("=", 1) for argument in arguments)
    matrix = gather({server: Path(path) for server, path in reports.items()})
    write_text(FOLDER / "wire.json", data(matrix))
    write_text(FOLDER / "wire.md", page(matrix))


if __name__ == "__main__":
    main(sys.argv[1:])
