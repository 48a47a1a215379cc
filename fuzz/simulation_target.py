"""A fuzz target whose inputs are programs for a simulation."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Simulated:
    """Implements `mqproof.fuzz.target.Target`."""

    name: str
    invariants: Mapping[str, str]
    watched: tuple[str, ...]
    input_bytes_max: int
    program: Callable[[int], bytes]
    """Returns the program of a seed."""
    numbers: Iterable[int]
    """The seeds to begin with."""
    play: Callable[[bytes, Counter[str]], None]
    """Runs a program and counts what it judges. Raises Finding."""
    checked: Counter[str] = field(default_factory=Counter)

    def seeds(self) -> Iterable[bytes]:
        return map(self.program, self.numbers)

    def run(self, data: bytes) -> None:
        tested: Counter[str] = Counter()
        try:
            self.play(data, tested)
        finally:
            self.checked.update(list(+tested))  # inputs are counted, not events
