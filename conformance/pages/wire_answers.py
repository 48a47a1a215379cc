"""Writes the compatibility matrix: the verdicts of several servers, as data and as a page.

python -m mqproof.conformance.pages.wire_answers "Apache 4.9.5=a.json" mqproof=c.json

reads reports of `mqproof conform --suite wire --json` and writes wire.json and wire.md into
docs/reference/conformance/.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from mqproof.conformance.wire.case_results import operation_of, verdict_of
from mqproof.conformance.wire.catalogue import CASES
from mqproof.conformance.wire.model import Verdict
from mqproof.report.json_file import from_json
from mqproof.report.write import write_text

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "conformance"
NOT_REQUESTED: Final = "-"
"""The verdict of a case that was not run: its rule holds only since a later release, or it has no server."""
_DETAIL_MAX: Final = 160

_INTRODUCTION: Final = """# Wire cases: responses of brokers and name servers

This page is for developers of brokers and clients: it has the results of the suite `wire` for servers of
Apache and of mqproof.

`mqproof conform --suite wire` sends {cases} numbered requests to a broker, its name server and its filter
server, and judges the responses.

| verdict | meaning |
|---|---|
| OK | the server meets the requirement |
| FAILED | the server does not meet a MUST, or sends no readable response in time |
| NON-STRICT | the server does not meet a SHOULD |
| INFORMATIONAL | a MAY: the response is reported, and nothing is required |
| UNIMPLEMENTED | the server answers that it does not support the request code |

`--dry-run` lists the cases with their sources. 4.9 receives only the cases that apply since 4.9. Cases of a
[filter server](../protocol/filters.md#filter-servers) need one in the broker's route. Released brokers have
none. Ours needs the extra `mqproof[filter]`.

The page is generated from the reports of three runs. The last command writes it and `wire.json`:

```
mqproof conform --target apache:4.9 --suite wire --json 4.9.json
mqproof conform --target apache:5 --suite wire --json 5.json
mqproof conform --target impl --suite wire --json ours.json
python -m mqproof.conformance.pages.wire_answers "{first}=4.9.json" "{second}=5.json" {third}=ours.json
```

For other servers run `mqproof conform --target remoting://HOST:PORT --suite wire`. The address is that of a
name server which has a route to the broker. You may also pass both addresses, separated by a comma. The suite
leaves topics and groups whose names begin with `wire_`.

## Totals
"""

_EXPLAINED: Final = """## Failed cases

- QUERY_MESSAGE and VIEW_MESSAGE_BY_ID: released brokers also answer a one-way request, if they find messages.
  Clients discard such a response.
- GET_BROKER_CLUSTER_ACL_INFO: 4.9.5 sends no response while access control is off.
- A delay that overflows means at once in 5.5.0 ([timers](../protocol/timers.md#times)).

The runs also showed the following, which the protocol reference describes:

- A registration without a broker name breaks the list of system topics of 5.5.0.
- QUERY_CORRECTION_OFFSET deletes offsets.
- In 5.5.0, DELETE_SUBSCRIPTIONGROUP keeps the group unless `cleanOffset` is true.
- A broker of 5.5.0 with 256 MiB outside the heap does not answer pops. `apache:5` gives it 1 GiB.
"""

_LOOSE: Final = """## NON-STRICT cases

The table has the numbers of the cases. In a case whose number ends in 0 or 1, a mandatory field is missing or
has the wrong type, and the server does not refuse the request. `--dry-run` prints the titles of all cases.
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
    yield from _table(("case", "server", "observation"), _failures(matrix))
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
        yield operation, *(cell or "not requested" for cell in cells)


def _table(columns: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def main(arguments: Sequence[str]) -> None:
    reports = dict(argument.split("=", 1) for argument in arguments)
    matrix = gather({server: Path(path) for server, path in reports.items()})
    write_text(FOLDER / "wire.json", data(matrix))
    write_text(FOLDER / "wire.md", page(matrix))


if __name__ == "__main__":
    main(sys.argv[1:])
