"""Writes the page of real clients from the results that are kept in clients.json.

python -m mqproof.conformance.pages.client_results
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.apache.go_client import go_release
from mqproof.conformance.client_scenarios.matrix import CLIENTS, GO, Cell, read
from mqproof.conformance.client_scenarios.scenarios import SCENARIOS
from mqproof.conformance.client_scenarios.sites import OURS
from mqproof.report.model import Verdict
from mqproof.report.write import write_text

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "conformance"
RESULTS: Final = FOLDER / "clients.json"
PAGE: Final = FOLDER / "clients.md"

_INTRODUCTION: Final = """# Real clients at real brokers

This page is for application developers: it has the results of Apache's released clients with mqproof's
broker, and of mqproof's client with Apache's brokers.

Each scenario runs an application's use of one feature, in processes of its own. The broker receives
SIGKILL and is started again on its store, once or twice in most scenarios. A cell has the numbers of
messages received and expected, and then what differs: lost, delivered more than once, or not expected. A
dash means that the client or the broker lacks the feature.

The clients and brokers have their default configuration, with three exceptions. They store positions more
often. The delays of levels and of checks are shorter. Optional features are on. Brokers flush
asynchronously and have no slave.

```
python -m mqproof.conformance.client_scenarios.matrix --json docs/reference/conformance/clients.json
python -m mqproof.conformance.pages.client_results
```

The first command runs all scenarios, in about {minutes} minutes. It needs Maven, a JDK 17 and Go. The
options `--client`, `--broker` and `--scenario` select some of them. The second command writes this page.
`make test-apache` runs the same scenarios as tests.

## Results

"""

_OBSERVED: Final = """
## Observed

The table has the last run of each scenario. These observations are of all runs.

- The Go client returns a reply without its body, with our broker and with 4.9.5. Our client and Java received
  all replies.
- The Go client subscribes only to a topic that exists. Its `PullFrom` waits at the end of a queue.
- A consumer of Java 5.5.0 traces no message that 4.9.5 stored, because 4.9.5 stores no property `TRACE_ON`.
- Java 4.9.8 received messages again 25 s after the restart of a broker, Java 5.5.0 after a few seconds.
- Brokers of 4.9.5 and 5.5.0 deliver delayed messages again after a kill, and so redeliveries. Their
  `flushDelayOffsetInterval` was 200 ms, and the kill came 2.5 s later. Our broker repeated no message.
- A broker of 5.5.0 delivers timed messages again after a kill. Our broker did not.
- In one early run with our broker, Java 5.5.0 received 5 of 10 messages of the SQL92 filter twice. The store
  of that run has them twice: an interrupted run in the same folder had sent them to the same topic. Since
  then each run has a topic and a group of its own. 20 later runs repeated no message. Nor did 4 runs whose
  kills came before positions were stored: the client went on from its memory.
- After a kill, brokers of 4.9.5 and 5.5.0 repeated committed messages of transactions. 5.5.0 also checked
  transactions that were committed.
"""

_MEASURED: Final = """
## What was measured besides the counts

"""

_SCENARIOS: Final = """
## Scenarios

"""


def page(cells: Iterable[Cell]) -> str:
    """Return the text of the page."""
    known = list(cells)
    minutes = round(sum(cell.seconds for cell in known) / 60)
    parts = [
        _INTRODUCTION.format(minutes=minutes),
        *_table(known),
        _OBSERVED,
        _MEASURED,
        *_details(known),
        _SCENARIOS,
    ]
    return "".join((*parts, *_titles()))


def _table(cells: list[Cell]) -> Iterator[str]:
    columns = sorted(
        {(cell.client, cell.broker) for cell in cells},
        key=lambda pair: (pair[0] == OURS, CLIENTS.index(pair[0]), pair[1]),
    )
    found = {cell.key: cell for cell in cells}
    yield f"| | {' | '.join(_column(*pair) for pair in columns)} |\n|{'---|' * (len(columns) + 1)}\n"
    for scenario in SCENARIOS:
        shown = (_shown(found.get((client, broker, scenario.name))) for client, broker in columns)
        yield f"| {scenario.title} | {' | '.join(shown)} |\n"


def _column(client: str, broker: str) -> str:
    return f"{label(client)}, {'our broker' if broker == OURS else f'Apache {broker}'}"


def label(client: str) -> str:
    """Return the name of a client for readers."""
    if client == OURS:
        return "our client"
    return f"Go {go_release()}" if client == GO else client.replace("java-", "Java ")


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return "not run"
    if cell.verdict == Verdict.NOT_TESTED:
        return "–"
    faults = {"lost": cell.lost, "twice": cell.duplicated, "not expected": cell.unexpected}
    parts = [f"{cell.received} of {cell.expected}", *(f"{n} {what}" for what, n in faults.items() if n)]
    text = ", ".join(parts)
    return text if cell.verdict == Verdict.HELD else f"**violated**: {text}"


def _details(cells: list[Cell]) -> Iterator[str]:
    yield "| client | broker | scenario | kills | seconds | observation |\n|---|---|---|---|---|---|\n"
    names = {scenario.name: scenario.title for scenario in SCENARIOS}
    for cell in cells:
        if cell.detail:
            detail = cell.detail.replace("|", "\\|").replace("\n", " ")[:240]
            title = names.get(cell.scenario, cell.scenario)
            yield (
                f"| {label(cell.client)} | {cell.broker} | {title} | {cell.kills} | {cell.seconds:.0f} "
                f"| {detail} |\n"
            )


def _titles() -> Iterator[str]:
    for scenario in SCENARIOS:
        summary = " ".join((scenario.play.__doc__ or "").split())
        yield f"- {scenario.title}: {summary[:1].lower()}{summary[1:]}\n"


if __name__ == "__main__":
    write_text(PAGE, page(read(RESULTS)))
