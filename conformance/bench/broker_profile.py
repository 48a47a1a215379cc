"""Explains rows of `mqproof bench broker`: runs our side again under Python's own profiler."""

import io
import pstats
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.bench.broker import (
    ONCE,
    PARTS,
    PLAIN,
    Amount,
    OurBroker,
    Progress,
    Rounds,
    Run,
    Setup,
    Side,
    behind,
)
from mqproof.conformance.bench.copied_brokers import our_copies

_FUNCTIONS: Final = 25
_OF_INTEREST: Final = r"/impl/|posix|_struct|msgspec|zlib"
"""Selects functions that process messages, and not those of the process's start."""


def profiles(result: dict[str, Any], amount: Amount, directory: Path, progress: Progress) -> str:
    """Return the profile of each part with a row in which our broker is behind, as text.

    It lists the functions with the highest own time. Profiling slows the process down, so no rates are shown.
    Memory, starts, features and copies have no profile.
    """
    parts: dict[str, list[str]] = {}
    for row, _ in behind(result):
        parts.setdefault(row["part"], []).append(row["row"])
    rounds: Rounds = {
        row["row"]: {side: figures["rounds"] for side, figures in row["sides"].items()}
        for row in result["rows"]
    }
    texts = []
    for part, rows in parts.items():
        if part in PARTS and part not in ONCE:
            progress(f"profile of {part}")
            texts.append(
                "\n".join(
                    [f"Our broker's time in: {'; '.join(rows)}", _profile(part, amount, directory, rounds)]
                )
            )
    return "\n".join(texts)


def _profile(part: str, amount: Amount, directory: Path, rounds: Rounds) -> str:
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        written = Path(folder) / "profile"
        for _ in PARTS[part](Side(_profiled(written), our_copies), Path(folder), amount, rounds):
            pass  # run only for its profile
        text = io.StringIO()
        stats = pstats.Stats(str(written), stream=text).sort_stats("tottime")
        stats.print_stats(_OF_INTEREST, _FUNCTIONS)
    lines = text.getvalue().splitlines()
    table = next(number for number, line in enumerate(lines) if "ncalls" in line)
    return "\n".join(line for line in lines[table:] if line.strip())


def _profiled(written: Path) -> Run:
    @contextmanager
    def run(folder: Path, flush: str, setup: Setup = PLAIN) -> Iterator[OurBroker]:
        broker = OurBroker(folder, flush, written, setup)
        try:
            broker.start()
            yield broker
            broker.stop()
        finally:
            broker.kill()

    return run
