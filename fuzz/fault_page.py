"""Writes the page of single faults: what each fault of each type of file did, at each broker.

python -m mqproof.fuzz.fault_page single=single.json pair=pair.json 4.9.5=4.json 5.5.0=5.json

Reads reports of `mqproof fuzz faults --json`, keeps their numbers in faults.json, and writes the page. A
broker that is named several times has the sum of its reports. Without arguments the page is written again.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from mqproof.fuzz.fault_campaign import VIOLATED
from mqproof.fuzz.targets.cluster_rot import ClusterRot
from mqproof.report.json_file import from_json
from mqproof.report.model import Report
from mqproof.report.write import write_text
from mqproof.spec.checkout import expect_checkout

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "conformance"
NUMBERS: Final = FOLDER / "faults.json"
PAGE: Final = FOLDER / "faults.md"
BROKERS: Final = {
    "single": "one broker",
    "pair": "master and slave",
    "group": "DLedger group",
    "4.9.5": "Apache 4.9.5",
    "5.5.0": "Apache 5.5.0",
}
"""The brokers of the page, with their names there. The first three are ours."""

_HEAD: Final = """\
# Single faults of a disk

This page is for operators, and for implementers of brokers: it shows what one damaged block or file of a
store does to mqproof's broker and to Apache's releases.
[Fuzzing](../../explanation/fuzzing.md#single-faults) explains the method, the faults and the verdicts.

Our brokers are simulated: one broker without peers, a master with its slave, and a DLedger group of three.
With peers, one machine has the fault. A message that it lost must be there again after at most 30 seconds,
because its peers have it.

The releases run in one Java process, each broker on a store directory of its own. There, a block is 64 bytes
of the part of a file that was written. A message that consumers do not receive is "reported" if a line of the
broker's log names its place.

```
mqproof fuzz faults --points 50000 --seed 1 --workers 2 --json single.json
mqproof fuzz faults --brokers pair --points 2000 --seed 1 --workers 2 --json pair.json
mqproof fuzz faults --brokers group --points 2000 --seed 1 --workers 2 --json group.json
mqproof fuzz faults --target apache:4 --points 1000 --seed 1 --workers 8 --json 4.json
mqproof fuzz faults --target apache:5 --points 1000 --seed 1 --workers 8 --json 5.json
python -m mqproof.fuzz.fault_page single=single.json pair=pair.json group=group.json \\
  4.9.5=4.json 5.5.0=5.json
```

The last command writes this page. `--first N` begins at the N-th point, and a broker may be given several
reports, so that a table can be continued. `--point HEX` judges one point again.

## Summary

| broker | points | points a minute | violated | share | without a verdict |
|---|---|---|---|---|---|
"""
_VIOLATIONS: Final = """
## What was violated

All messages were answered with SEND_OK under SYNC_FLUSH before the fault. The messages in the table:

- `a new one gets offset N`: a start ends the log at the damaged record. The records after it are cut, and new
  messages get their queue offsets, so consumers that were further pass over them.
- `is lost without a report`: no line of the log names a message that consumers do not receive. The queue
  stops at a damaged entry, or passes over the message.
- `are delivered that were never stored there`, `an altered record is delivered`: a read believes the queue
  entry, or does not compare the body with its CRC.
- `does not deliver the new message`: the queue stops before it, or the table of topics lacks its topic.

Numbers in the messages are replaced by N. A row counts the points of all faults that are named in it. A
violation counts only if it is seen twice, because a machine that is too busy can look like a loss.

| broker | file | faults | invariant | message | points |
|---|---|---|---|---|---|
"""


class Judged(msgspec.Struct, frozen=True):
    """How often an invariant was judged, and how often it was violated."""

    points: int = 0
    violated: int = 0


class Numbers(msgspec.Struct):
    """What the reports of one broker say."""

    seconds: float = 0
    counts: dict[str, int] = {}
    """The number of points by "file | fault | verdict"."""
    invariants: dict[str, Judged] = {}
    examples: dict[str, str] = {}
    """One violation of each invariant."""
    violations: dict[str, int] = {}
    """The number of points by "file | fault | invariant | message"."""
    unjudged: int = 0
    """The points without a verdict: the broker did not stop, or another program took its port."""

    @property
    def points(self) -> int:
        return sum(self.counts.values())

    def add(self, report: Report) -> None:
        """Add the numbers of a report."""
        self.seconds += float(report.facts["seconds"])
        self.unjudged += int(report.facts.get("without a verdict", "0"))
        verdicts, *others = report.tables
        for file, fault, *cells in verdicts.rows:
            for verdict, cell in zip(verdicts.columns[2:], cells, strict=True):
                if count := _number(cell):
                    key = f"{file} | {fault} | {verdict}"
                    self.counts[key] = self.counts.get(key, 0) + count
        for *place, cell in (row for table in others for row in table.rows):
            key = " | ".join(place)
            self.violations[key] = self.violations.get(key, 0) + _number(cell)
        for result in report.results:
            was = self.invariants.get(result.name, Judged())
            points = was.points + result.counts["fault points"]
            self.invariants[result.name] = Judged(points, was.violated + (result.found or 0))
            if result.witnesses:
                self.examples.setdefault(result.name, result.witnesses[0].text.replace("\n", " ")[:200])


def none() -> Numbers:
    """Return the numbers of a broker without reports."""
    return Numbers(counts={}, invariants={}, examples={}, violations={})


def recorded() -> dict[str, Numbers]:
    """Return the kept numbers by broker; none if there is no file."""
    if not NUMBERS.exists():
        return {}
    return msgspec.json.decode(NUMBERS.read_bytes(), type=dict[str, Numbers])


def page(known: dict[str, Numbers]) -> str:
    """Return the page as Markdown."""
    shown: dict[str, Numbers] = {broker: known[broker] for broker in BROKERS if broker in known}
    return "".join([_HEAD, *_summary(shown), *_invariants(shown), *_violations(shown), *_tables(shown)])


def _summary(known: dict[str, Numbers]) -> Iterator[str]:
    for broker, numbers in known.items():
        bad = sum(count for key, count in numbers.counts.items() if key.endswith(f" {VIOLATED}"))
        pace = f"{60 * numbers.points / numbers.seconds:,.0f}"
        share = f"{bad / numbers.points:.1%}"
        cells = (BROKERS[broker], f"{numbers.points:,}", pace, f"{bad:,}", share, str(numbers.unjudged))
        yield f"| {' | '.join(cells)} |\n"
    yield "\nThe machine has two cores, and other programs used them during the runs.\n"


def _invariants(known: dict[str, Numbers]) -> Iterator[str]:
    names = " | ".join(BROKERS[broker] for broker in known)
    yield f"\n## Invariants\n\n| invariant | {names} |\n|---|{'---|' * len(known)}\n"
    for name in ClusterRot.invariants:
        judged = (numbers.invariants.get(name) for numbers in known.values())
        cells = (f"{one.violated:,} of {one.points:,}" if one else "–" for one in judged)
        yield f"| {name} | {' | '.join(cells)} |\n"
    yield "\nEach cell is the number of violations and the number of points that tested the invariant.\n"
    for broker, numbers in known.items():
        for name, text in numbers.examples.items():
            yield f"\n- {BROKERS[broker]}, {name}: `{text.replace('`', chr(39))}`"
    yield "\n"


def _violations(known: dict[str, Numbers]) -> Iterator[str]:
    found: dict[tuple[str, ...], Counter[str]] = {}
    for broker, numbers in known.items():
        for key, count in numbers.violations.items():
            file, fault, invariant, message = key.split(" | ", 3)
            faults = found.setdefault((BROKERS[broker], file, invariant, message), Counter())
            faults[fault] += count
    if found:
        yield _VIOLATIONS
    for (broker, file, invariant, message), faults in sorted(found.items()):
        text = message.replace("|", "/").replace("`", "'")
        cells = broker, file, ", ".join(sorted(faults)), invariant, f"`{text}`", f"{faults.total():,}"
        yield f"| {' | '.join(cells)} |\n"


def _tables(known: dict[str, Numbers]) -> Iterator[str]:
    for broker, numbers in known.items():
        keys = [tuple(key.split(" | ")) for key in sorted(numbers.counts)]
        verdicts = sorted({key[2] for key in keys}, key=lambda each: (each == VIOLATED, each))
        yield f"\n## {BROKERS[broker]}\n\n| file | fault | {' | '.join(verdicts)} |\n"
        yield f"|---|---|{'---|' * len(verdicts)}\n"
        for (file, fault), of_row in groupby(keys, key=lambda key: key[:2]):
            found = Counter({key[2]: numbers.counts[" | ".join(key)] for key in of_row})
            yield f"| {file} | {fault} | {' | '.join(f'{found[each]:,}' for each in verdicts)} |\n"


def _number(cell: str) -> int:
    return int(cell.replace(",", ""))


def main(arguments: Sequence[str]) -> None:
    expect_checkout("mqproof.fuzz.fault_page")
    known, new = recorded(), dict[str, Numbers]()
    for argument in arguments:
        broker, _, file = argument.partition("=")
        if broker not in BROKERS:
            sys.exit(f"{argument}: NAME=FILE expected, NAME being one of {', '.join(BROKERS)}")
        report = from_json(Path(file).read_text(encoding="utf-8"), file)
        new.setdefault(broker, none()).add(report)
    known |= new
    if new:
        write_text(NUMBERS, msgspec.json.format(msgspec.json.encode(known)).decode() + "\n")
    write_text(PAGE, page(known))


if __name__ == "__main__":
    main(sys.argv[1:])
