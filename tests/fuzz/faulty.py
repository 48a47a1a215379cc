"""Small targets that fail in one way each."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import ClassVar

from mqproof.fuzz.target import Finding


class Faulty:
    """A target made from a function."""

    name: ClassVar = "faulty"
    invariants: ClassVar = {"Fine": "nothing goes wrong"}
    watched: ClassVar = ("tests.fuzz.faulty",)
    input_bytes_max: ClassVar = 64

    def __init__(self, function: Callable[[bytes], None]) -> None:
        self.checked: Counter[str] = Counter()
        self._function = function

    def seeds(self) -> Iterable[bytes]:
        return [b"seed"]

    def run(self, data: bytes) -> None:
        self._function(data)


def fine(data: bytes) -> None:
    del data


def broken(data: bytes) -> None:
    raise Finding("Fine", f"{len(data)} bytes are not fine")


def divides(data: bytes) -> None:
    _divide(len(data))


def divides_elsewhere(data: bytes) -> None:
    1 // (len(data) * 0)


def _divide(number: int) -> None:
    number // 0


def endless(data: bytes) -> None:
    while data is not None:
        pass


def swallows_everything(data: bytes) -> None:
    while True:
        try:
            endless(data)
        except Exception:  # what a careless target does
            continue


def loop(data: bytes) -> None:
    """The first byte is the number of repetitions."""
    for _ in range(data[0]):
        fine(data)
