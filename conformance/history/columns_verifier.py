"""Verifies the certificates of a history in columns.

    python -m mqproof.conformance.history.columns_verifier FOLDER CERTIFICATES

The certificate `regular` names queues, and the number of operations of each. `queue_replay.py` verifies that
they are regular, so that no rule is violated in them. The ids of their messages must occur nowhere else. All
other operations become lines, by which the verifiers of the rules verify the other certificates. C12 and C20
are about topics: for them, the lines also have the first answered send and the last read of each regular
queue, without messages.
"""

import json
import sys
from collections.abc import Collection, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from mqproof.conformance.history import (
    ahead_verifier,
    call_verifier,
    commit_verifier,
    conflict_verifier,
    delivery_verifier,
    drain_verifier,
    flicker_verifier,
    lag_verifier,
    owner_verifier,
    place_verifier,
    poll_verifier,
    pop_verifier,
    range_verifier,
    repetition_verifier,
    return_verifier,
    service_verifier,
    timer_verifier,
    value_verifier,
)
from mqproof.conformance.history.column_files import Columns, Line, expect
from mqproof.conformance.history.queue_replay import Replay, Rest
from mqproof.conformance.history.verification import History, RefusedError, verify

VERIFIERS: tuple[Any, ...] = (
    ahead_verifier, call_verifier, commit_verifier, conflict_verifier, delivery_verifier, drain_verifier,
    flicker_verifier, lag_verifier, owner_verifier, place_verifier, poll_verifier, pop_verifier,
    range_verifier, repetition_verifier, return_verifier, service_verifier, timer_verifier, value_verifier,
)  # fmt: skip
RULES = {rule: facts for verifier in VERIFIERS for rule, facts in verifier.RULES.items()}
IDS = ("id", "offset_id")
ERRORS = (RefusedError, LookupError, ValueError)


class Verification:
    """The certificates of one history, which are verified one after the other.

    Each of the last three methods verifies one, and returns what was accepted.
    """

    def __init__(self, columns: Columns, given: dict[str, Any]) -> None:
        self.columns, self.given, self.regular = columns, given, dict(given["regular"]["evidence"])
        lines, outlines = columns.besides(self.regular)
        self.numbers = {name: [numbers(named(lines, name))] for name in IDS}
        """The numbers of the ids and offset ids: of all other operations, and of each regular queue."""
        self.history = History(sorted(lines + outlines, key=itemgetter("index")), is_whole=False)
        self.history.last_time = columns.last_time
        self.around = Rest(self.history)

    def queue(self, name: str) -> str:
        queue = self.columns.queue(name)
        count = len(queue.sends.start) + len(queue.reads.start) + len(queue.commits.start)
        expect(count == self.regular[name], f"it has {count} operations, not {self.regular[name]}")
        replay = Replay(name, queue, self.columns, self.around)
        replay.run()
        self.numbers["id"].append(numbers(replay.log.ids.tolist()))
        self.numbers["offset_id"].append(numbers(replay.log.offset_ids.tolist()))
        return f"regular, accepted with {count} operations"

    def unique(self, name: str) -> str:
        found = np.sort(np.concatenate(self.numbers[name]))
        expect((np.diff(found) != 0).all(), "one of a regular queue occurs twice")
        return f"accepted, {len(found)} different ones"

    def rule(self, name: str) -> str:
        verdict, evidence = self.given[name]["verdict"], self.given[name]["evidence"]
        verify(RULES[name](self.history), verdict, evidence)
        return f"{verdict}, accepted with {len(evidence)} facts"


def named(lines: list[Line], name: str) -> set[bytes]:
    """Return the ids, or the offset ids, in the values of lines and in their messages."""
    asked = [line.get("value", {}) for line in lines]
    every = [each for value in asked for each in (value, *value.get("messages", ()))]
    return {each[name].encode() for each in every if each.get(name)}


def numbers(texts: Collection[bytes]) -> Any:
    """Return a number of 64 bits for each text. Two texts with one number count as equal."""
    return np.fromiter(map(hash, texts), np.int64, len(texts))


def results(columns: Columns, given: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of each queue and rule, with what is said about its certificate."""
    try:
        verification = Verification(columns, given)
    except ERRORS as error:
        yield "columns", f"refused: {error}"
        return
    claims = [(verification.queue, name) for name in verification.regular]
    claims += [(verification.unique, name) for name in IDS]
    claims += [(verification.rule, rule) for rule in RULES]
    for verified, name in claims:
        try:
            yield name, verified(name)
        except ERRORS as error:
            yield name, f"refused: {error}"


def main(folder: str, certificate_file: str) -> int:
    """Print a line for each queue and rule; return 1 if a certificate is refused or missing."""
    with open(certificate_file, "rb") as texts:  # noqa: PTH123
        given, refused = {each["rule"]: each for each in map(json.loads, texts)}, False
    for name, said in results(Columns(Path(folder)), given):
        print(f"{name}: {said}")
        refused |= said.startswith("refused")
    return int(refused)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
