"""Records which lines of `impl/` each suite executes, with coverage.py; one process a suite.

A mutant is judged by the suites that execute its line. Lines that no suite executes are white spots.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import coverage

from mqproof.conformance.mutation.examiner import Outcome, Task, examine

_IMPL: Final = Path(__file__).resolve().parents[2] / "impl"
_TIMEOUT_S: Final = 3600

Lines = Mapping[str, frozenset[int]]
"""Maps a module to the executed lines."""


class ReachError(RuntimeError):
    """A suite does not hold on the original code, or its process failed."""


def measure(suite: str, examples: int, seed: int) -> tuple[Lines, float]:
    """Run a suite on the original code; return the executed lines and its processor time in seconds.

    The time includes that of coverage.py.

    Raises:
        ReachError: the suite does not hold on the original code.
    """
    command = [sys.executable, "-m", "mqproof.conformance.mutation.reach", suite, str(examples), str(seed)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if ran.returncode:
        raise ReachError(f"suite {suite} on the original code: {ran.stderr.strip()[-500:]}")
    found = json.loads(ran.stdout.splitlines()[-1])
    return {module: frozenset(lines) for module, lines in found["lines"].items()}, found["cpu_s"]


def _main(suite: str, examples: int, seed: int) -> None:
    recorder = coverage.Coverage(data_file=None, include=[f"{_IMPL}/*"], config_file=False)
    recorder.start()
    verdict = examine(Task("", 0, (suite,), examples, seed, 0), lambda _: None)
    recorder.stop()
    if verdict.outcome is not Outcome.SURVIVED:
        sys.exit(f"{verdict.outcome} by {verdict.by}: {verdict.witness}")
    data = recorder.get_data()
    lines = {_module(file): sorted(data.lines(file) or ()) for file in sorted(data.measured_files())}
    print(json.dumps({"lines": lines, "cpu_s": verdict.cpu_s}))


def _module(file: str) -> str:
    inside = Path(file).resolve().relative_to(_IMPL.parent).with_suffix("")
    name = ".".join(("mqproof", *inside.parts))
    return name.removesuffix(".__init__")


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
