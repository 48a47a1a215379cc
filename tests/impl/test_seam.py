"""Tests that only the runtime and the outermost modules of impl use time, randomness, files or sockets."""

import ast
from pathlib import Path

import pytest

from mqproof import impl

ROOT = Path(impl.__file__).parent
FORBIDDEN = {"os", "pathlib", "shutil", "tempfile", "io", "fcntl", "time", "datetime", "secrets", "uuid"}
FORBIDDEN |= {"socket", "selectors", "ssl", "threading", "multiprocessing", "subprocess", "concurrent"}
CALLS = {"open", "run_in_executor", "to_thread", "create_server", "create_connection", "open_connection"}
VALUES = {"datetime.datetime", "datetime.timedelta", "io.StringIO", "uuid.UUID"}
"""Types of values. Their methods that read the clock are forbidden."""
CLOCKS = {"datetime.now", "datetime.utcnow", "datetime.today"}
SHELLS = {"client/blocking.py"}  # runs its own event loop
SHELLS |= {
    "client/connection/client_ids.py",
    "client/connection/client_settings.py",
}  # the process's environment
SHELLS |= {"admin/cli.py", "examine/cli.py"}  # command lines
SHELLS |= {f"diagnosis/{name}.py" for name in ("cli", "history", "log_files", "question")}  # log files
SHELLS |= {
    "admin/run.py",
    "admin/times.py",
    "admin/list_files.py",
}  # an administrator's terminal, calendar, files
SHELL_FOLDERS = ("command/", "console/", "embedded/", "integrations/", "terminal/")
PURE = {"runtime/config_file.py", "runtime/event_log.py", "runtime/properties.py", "runtime/rate.py"}
"""Modules of the runtime that use its other modules only."""
OUTSIDE = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if (name := path.relative_to(ROOT).as_posix()) not in SHELLS
    and (name in PURE or not name.startswith(("runtime/", *SHELL_FOLDERS)))
]


def _trespasses(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] in FORBIDDEN]
        elif isinstance(node, ast.ImportFrom) and node.module:
            values = {f"{node.module}.{alias.name}" for alias in node.names} <= VALUES
            found += [node.module] * (node.module.partition(".")[0] in FORBIDDEN and not values)
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            on_seam = isinstance(node.func, ast.Attribute) and "disk" in ast.unparse(node.func.value)
            found += [f"{name}()"] * (name in CALLS and not on_seam)
            found += [f"{name}()"] * (ast.unparse(node.func) in CLOCKS)
            found += [ast.unparse(node.func)] * (
                ast.unparse(node.func).startswith("random.") and name != "Random"
            )
    return found


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_environment_is_reached_only_through_the_runtime(path: Path) -> None:
    assert _trespasses(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import os.path",
        "from time import monotonic",
        "from datetime import date",
        "from datetime import datetime\ndatetime.now()",
        "from uuid import UUID, uuid4",
        "open('x')",
        "random.random()",
        "loop.run_in_executor(f)",
    ],
)
def test_a_violation_is_noticed(source: str) -> None:
    assert len(_trespasses(source)) == 1


def test_the_runtime_itself_is_exempt() -> None:
    assert _trespasses("self._disk.open('x'); random.Random(1); disk.create('x', 1)") == []
