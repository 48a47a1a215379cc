"""CanaryAlive: no input kills the canary. It is violated on purpose, to test the fuzzing engine itself.

The target parses records (kind, length, text). It reports a finding when a record of kind 7 with a correct
length contains the text "gas!". A coverage-guided engine finds it within thousands of inputs; an unguided one
would need billions.
"""

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from mqproof.fuzz.target import Finding


class Canary:
    name: ClassVar = "canary"
    invariants: ClassVar = {"CanaryAlive": "no input kills the canary (broken on purpose)"}
    watched: ClassVar = ("mqproof.fuzz.targets.canary",)
    input_bytes_max: ClassVar = 256

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()

    def seeds(self) -> Iterable[bytes]:
        return [b"\x01\x00\x00\x00\x05hello", b"\x02\x00\x00\x00\x00"]

    def run(self, data: bytes) -> None:
        self.checked["CanaryAlive"] += 1
        for kind, text in _records(data):
            if kind == 7:
                _breathe(text)


def _records(data: bytes) -> Iterable[tuple[int, bytes]]:
    at = 0
    while at + 5 <= len(data):
        size = int.from_bytes(data[at + 1 : at + 5], "big")
        if at + 5 + size > len(data):
            return
        yield data[at], data[at + 5 : at + 5 + size]
        at += 5 + size


def _breathe(text: bytes) -> None:
    # One condition per line, so that coverage shows each correct letter.
    if text[0:1] != b"g":
        return
    if text[1:2] != b"a":
        return
    if text[2:3] != b"s":
        return
    if text[3:4] != b"!":
        return
    raise Finding("CanaryAlive", "the canary is dead")


TARGET = Canary
