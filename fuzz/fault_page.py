"""Writes the page of single faults: what each fault of each type of file did, at each broker.

python -m mqproof.fuzz.fault_page ours=ours.json 4.9.5=4.json 5.5.0=5.json

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
from mqproof.fuzz.targets.store_rot import StoreRot
from mqproof.report.json_file import from_json
from mqproof.report.model import Report
from mqproof.report.write import write_text
from mqproof.spec.checkout import expect_checkout

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "conformance"
NUMBERS: Final = FOLDER / "faults.json"
PAGE: Final = FOLDER / "faults.md"
BROKERS: Final = ("ours", "4.9.5", "5.5.0")

_HEAD: Final = """\
# Single faults of a disk

This page is for operators, and for implementers of brokers: it shows what one damaged block or file of a
store does to mqproof's broker and to Apache's releases.
[Fuzzing](../../explanation/fuzzing.md#single-faults) explains the method, the faults and the verdicts.

Our broker's store is on a simulated disk. The releases run in one Java process, each broker on a store
directory of its own. There, a block is 64 bytes of the part of a file that was written. A message that
consumers do not receive is "reported" if a line of the broker's log names its place.

```
mqproof fuzz faults --points 50000 --seed 1 --workers 2 --json ours.json
mqproof fuzz faults --target apache:4 --points 1000 --seed 1 --workers 10 --json 4.json
mqproof fuzz faults --target apache:5 --points 1000 --seed 1 --workers 10 --json 5.json
python -m mqproof.fuzz.fault_page ours=ours.json 4.9.5=4.json 5.5.0=5.json
```

The last command writes this page. `--first N` begins at the N-th point, and a broker may be given several
reports, so that a table can be continued. `--point HEX` judges one point again.

## Summary

| broker | points | seconds | violated | share |
|---|---|---|---|---|
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

    @property
    def points(self) -> int:
        return sum(self.counts.values())

    def add(self, report: Report) -> None:
        """Add the numbers of a report."""
        self.seconds += float(report.facts["seconds"])
        for table in report.tables:
            for file, fault, *cells in table.rows:
                for verdict, cell in zip(table.columns[2:], cells, strict=True):
                    if count := int(cell.replace(",", "")):
                        key = f"{file} | {fault} | {verdict}"
                        self.counts[key] = self.counts.get(key, 0) + count
        for result in report.results:
            was = self.invariants.get(result.name, Judged())
            points = was.points + result.counts["fault points"]
            self.invariants[result.name] = Judged(points, was.violated + (result.found or 0))
            if result.witnesses:
                self.examples.setdefault(result.name, result.witnesses[0].text.replace("\n", " ")[:200])


def recorded() -> dict[str, Numbers]:
    """Return the kept numbers by broker; none if there is no file."""
    if not NUMBERS.exists():
        return {}
    return msgspec.json.decode(NUMBERS.read_bytes(), type=dict[str, Numbers])


def page(known: dict[str, Numbers]) -> str:
    """Return the page as Markdown."""
    shown: dict[str, Numbers] = {broker: known[broker] for broker in BROKERS if broker in known}
    return "".join([_HEAD, *_summary(shown), *_invariants(shown), *_tables(shown)])


def _summary(known: dict[str, Numbers]) -> Iterator[str]:
    for broker, numbers in known.items():
        bad = sum(count for key, count in numbers.counts.items() if key.endswith(f" {VIOLATED}"))
        share = f"{bad / numbers.points:.1%}"
        yield f"| {broker} | {numbers.points:,} | {numbers.seconds:,.0f} | {bad:,} | {share} |\n"
    yield "\nThe machine has two cores, and other programs used them during the runs.\n"


def _invariants(known: dict[str, Numbers]) -> Iterator[str]:
    yield f"\n## Invariants\n\n| invariant | {' | '.join(known)} |\n|---|{'---|' * len(known)}\n"
    for name in StoreRot.invariants:
        cells = (numbers.invariants.get(name, Judged()) for numbers in known.values())
        yield f"| {name} | {' | '.join(f'{one.violated:,} of {one.points:,}' for one in cells)} |\n"
    yield "\nEach cell is the number of violations and the number of points that tested the invariant.\n"
    for broker, numbers in known.items():
        for name, text in numbers.examples.items():
            yield f"\n- {broker}, {name}: `{text.replace('`', chr(39))}`"
    yield "\n"


def _tables(known: dict[str, Numbers]) -> Iterator[str]:
    for broker, numbers in known.items():
        keys = [tuple(key.split(" | ")) for key in sorted(numbers.counts)]
        verdicts = sorted({key[2] for key in keys}, key=lambda each: (each == VIOLATED, each))
        yield f"\n## {broker}\n\n| file | fault | {' | '.join(verdicts)} |\n"
        yield f"|---|---|{'---|' * len(verdicts)}\n"
        for (file, fault), of_row in groupby(keys, key=lambda key: key[:2]):
            found = Counter({key[2]: numbers.counts[" | ".join(key)] for key in of_row})
            yield f"| {file} | {fault} | {' | '.join(f'{found[each]:,}' for each in verdicts)} |\n"


def main(arguments: Sequence[str]) -> None:
    expect_checkout("mqproof.fuzz.fault_page")
    known, new = recorded(), dict[str, Numbers]()
    for argument in arguments:
        broker, _, file = argument.partition("=")
        if broker not in BROKERS:
            sys.exit(f"{argument}: NAME=FILE expected, NAME being one of {', '.join(BROKERS)}")
        report = from_json(Path(file).read_text(encoding="utf-8"), file)
        new.setdefault(broker, Numbers(counts={}, invariants={}, examples={})).add(report)
    known |= new
    if new:
        write_text(NUMBERS, msgspec.json.format(msgspec.json.encode(known)).decode() + "\n")
    write_text(PAGE, page(known))


if __name__ == "__main__":
    main(sys.argv[1:])
