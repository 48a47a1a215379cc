"""Writes the page of the suite hostile: each attack, its rule, and the result at each broker.

python -m mqproof.conformance.pages.hostile_results ours=ours.json 4.9.5=4.json 5.5.0=5.json

Reads reports of `mqproof conform --suite hostile --json`, keeps their results in hostile.json, and writes
the page. An attack that is not in a report keeps its result. Without arguments it writes the page again.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from mqproof.conformance.hostile.attack import Attack, Setup
from mqproof.conformance.hostile.attacks import ATTACKS
from mqproof.conformance.hostile.suite import LAYER
from mqproof.report.json_file import from_json
from mqproof.report.model import Verdict
from mqproof.report.write import write_text
from mqproof.spec.catalogue import catalogue

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "conformance"
RESULTS: Final = FOLDER / "hostile.json"
PAGE: Final = FOLDER / "hostile.md"
BROKERS: Final = ("ours", "4.9.5", "5.5.0")

_HEAD: Final = """\
# Attacks on brokers

This page is for operators, and for implementers of brokers: it lists the attacks of the suite `hostile`, the
rule that each one tests, and the results of mqproof's broker and of Apache's releases.

An attack succeeds, and its verdict is "violated", if one of these is true:

- the broker reacts in another way than the column "expected" says;
- it does not serve another client during the attack or after it: a message is stored, and it and an earlier
  one are read back;
- it takes more than 300 MiB for one attack, if mqproof started it.

The rules are those of mqproof's [protocol documentation](../protocol/index.md). A released broker that
violates one does what its release does: RocketMQ has no shares of connections, for example, and does not
authenticate slaves. A run waits 20 s for one reaction, and 60 s for all answers to one attack.

Apache's brokers had a heap of 256 MiB, and the machine was busy while they were attacked. A result that is
20 s of silence may be another one on an idle machine.

```
mqproof conform --target impl --suite hostile --json ours.json
mqproof conform --target apache:4 --suite hostile --json 4.json
mqproof conform --target apache:5 --suite hostile --json 5.json
python -m mqproof.conformance.pages.hostile_results ours=ours.json 4.9.5=4.json 5.5.0=5.json
```

The last command writes this page. `--target remoting://HOST:PORT` attacks any broker; `--id hostile/NAME`
selects an attack. Do not run the suite against a broker that others use.

"""

_SETUPS: Final = """\
## Setups

| setup | targets | attacks |
|---|---|---|
"""
_TARGETS: Final = {
    Setup.BROKER: "all",
    Setup.ACCOUNTS: "`impl`, `apache:4`",
    Setup.SLAVES: "`impl`, `apache:4`, `apache:5`",
    Setup.MEMBERS: "`impl`",
    Setup.CONSUMER: "`impl`",
}
_ABOUT: Final = """
Attacks without their setup are "not applicable" at a target. `impl` and `apache` start one broker for each
setup. In the setup of slaves, a released broker has no peer secret, because no release has one.

"""


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one attack at one broker."""

    verdict: str
    detail: str = ""


Outcomes = Mapping[str, Mapping[str, Outcome]]
"""Broker, name of the attack, result."""


def recorded() -> Outcomes:
    """Return the kept results; none if there is no file."""
    if not RESULTS.exists():
        return {}
    return msgspec.json.decode(RESULTS.read_bytes(), type=dict[str, dict[str, Outcome]])


def outcomes(report: str, where: str) -> dict[str, Outcome]:
    """Return the results of the suite in a report of `mqproof conform --json`. Raises ReportFileError."""
    return {
        result.id.removeprefix(f"{LAYER}/"): Outcome(str(result.verdict), result.detail)
        for result in from_json(report, where).results
        if result.layer == LAYER
    }


def page(known: Outcomes) -> str:
    """Return the page as Markdown."""
    return "".join(
        [
            _HEAD,
            *_summary(known),
            _SETUPS,
            *(f"| {setup.value} | {_TARGETS[setup]} | {_count(setup)} |\n" for setup in Setup),
            _ABOUT,
            *(part for id_ in _invariants() for part in _table(id_, known)),
            *_reasons(known),
        ]
    )


def _invariants() -> list[str]:
    return list(dict.fromkeys(one.invariant for one in ATTACKS))


def _count(setup: Setup) -> int:
    return sum(one.setup is setup for one in ATTACKS)


def _verdict(known: Outcomes, broker: str, attack: Attack) -> str:
    outcome = known.get(broker, {}).get(attack.name)
    if outcome is None:
        return "not run"
    return {Verdict.HELD: "held", Verdict.VIOLATED: "**violated**"}.get(Verdict(outcome.verdict), "-")


def _summary(known: Outcomes) -> Iterator[str]:
    yield f"## Results\n\n| invariant | attacks | {' | '.join(BROKERS)} |\n|---|---|---|---|---|\n"
    for id_ in _invariants():
        attacks = [one for one in ATTACKS if one.invariant == id_]
        cells = [_tally(Counter(_verdict(known, broker, one) for one in attacks)) for broker in BROKERS]
        yield f"| {id_} {catalogue()[id_].name} | {len(attacks)} | {' | '.join(cells)} |\n"
    yield "\n"


def _tally(counts: Counter[str]) -> str:
    named = {"held": "held", "**violated**": "violated", "-": "not applicable", "not run": "not run"}
    return ", ".join(f"{counts[cell]} {name}" for cell, name in named.items() if counts[cell])


def _table(id_: str, known: Outcomes) -> Iterator[str]:
    entry = catalogue()[id_]
    yield f"## {id_} {entry.name}\n\n{entry.statement}\n\n"
    yield f"| attack | what it does | rule | expected | {' | '.join(BROKERS)} |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for one in (attack for attack in ATTACKS if attack.invariant == id_):
        cells = " | ".join(_verdict(known, broker, one) for broker in BROKERS)
        yield f"| {one.name} | {one.about} | {_rule(one)} | {one.expected.value} | {cells} |\n"
    yield "\n"


def _rule(attack: Attack) -> str:
    file, _, title = attack.rule.partition(", ")
    name = title.strip('"')
    return f"[{name}](../protocol/{file}#{name.lower().replace(' ', '-')})"


def _reasons(known: Outcomes) -> Iterator[str]:
    yield "## What the violations were\n\n"
    for broker in BROKERS:
        found = known.get(broker, {})
        violated = [one for one in ATTACKS if _verdict(known, broker, one) == "**violated**"]
        if violated:
            yield f"### {broker}\n\n| attack | observed |\n|---|---|\n"
            for one in violated:
                yield f"| {one.name} | {found[one.name].detail.replace('|', chr(92) + '|')} |\n"
            yield "\n"


def main(arguments: Sequence[str]) -> None:
    known = {broker: dict(of) for broker, of in recorded().items()}
    for argument in arguments:
        broker, _, file = argument.partition("=")
        if broker not in BROKERS:
            sys.exit(f"{argument}: NAME=FILE expected, NAME being one of {', '.join(BROKERS)}")
        found = known.get(broker, {}) | outcomes(Path(file).read_text(encoding="utf-8"), file)
        known[broker] = {one.name: found[one.name] for one in ATTACKS if one.name in found}
    if arguments:
        write_text(RESULTS, msgspec.json.format(msgspec.json.encode(known)).decode() + "\n")
    write_text(PAGE, page(known))


if __name__ == "__main__":
    main(sys.argv[1:])
