"""What the checks of each record that is read cost the broker, as processor time for each pulled message.

python -m mqproof.conformance.bench.read_checks

Our broker runs in a thread with sockets and files. One consumer pulls all messages, in turn with the checks
and without any. Only the broker's thread is measured, so neither the generator nor other programs change the
figure.
"""

import asyncio
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mqproof.conformance.bench import load
from mqproof.conformance.bench.load import Address, Messages
from mqproof.conformance.hosts.threaded_broker import threaded_broker
from mqproof.conformance.mutants.damage import anything
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected

_UNCHECKED: Final = Mutant(
    "unchecked", "no record is checked", "ROT-1", "mqproof.impl.store.files.record:entry_problem", anything
)
_WARM_PULLS: Final = 2


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of processor time for each message, of each run."""

    checked: Sequence[float]
    unchecked: Sequence[float]

    @property
    def overhead(self) -> float:
        """The median of the pairs: which part of the unchecked time the checks add."""
        pairs = zip(self.checked, self.unchecked, strict=True)
        return statistics.median(checked / unchecked - 1 for checked, unchecked in pairs)


def measure(messages: Messages, total: int, pairs: int) -> Cost:
    """Store messages, and pull them all once with and once without the checks for each pair."""
    with (
        tempfile.TemporaryDirectory(prefix="mqproof-bench-") as folder,
        threaded_broker(Path(folder) / "store") as broker,
    ):
        address = Address(*broker.address)

        def pulled_us() -> float:
            began_s = broker.cpu_s()
            asyncio.run(load.pull_rate(address, messages, total))
            return (broker.cpu_s() - began_s) / total * 1e6

        asyncio.run(load.create_topics(address, messages))
        asyncio.run(load.send_rate(address, messages, total, 64))
        for _ in range(_WARM_PULLS):
            pulled_us()
        checked, unchecked = [], []
        for _ in range(pairs):
            checked.append(pulled_us())
            with injected(_UNCHECKED):
                unchecked.append(pulled_us())
        return Cost(checked, unchecked)


def main(arguments: Sequence[str]) -> None:
    total, pairs = (int(arguments[0]), int(arguments[1])) if arguments else (20_000, 11)
    print("| body | checked: µs | unchecked: µs | overhead |\n|---|---|---|---|")
    for size in (128, 1024, 4096):
        cost = measure(Messages(size=size), total, pairs)
        medians = (f"{statistics.median(each):.2f}" for each in (cost.checked, cost.unchecked))
        print(f"| {size} bytes | {' | '.join(medians)} | {cost.overhead:.1%} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
