"""Tests that each module can be imported, and is imported under one name."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_IMPORT_ALL = """
import importlib, pkgutil, sys
from collections import defaultdict
from pathlib import Path
import mqproof

RUNS_AT_IMPORT = {"mqproof.__main__"}
for module in pkgutil.walk_packages(mqproof.__path__, "mqproof."):
    if module.name not in RUNS_AT_IMPORT:
        importlib.import_module(module.name)
names = defaultdict(set)
for name, module in list(sys.modules.items()):
    if file := getattr(module, "__file__", None):
        names[Path(file).resolve()].add(name)
ours = [name for name in sys.modules if name.startswith("mqproof.")]
print(len(ours))
for file, known in names.items():
    if ROOT in file.parents and ".venv" not in file.parts and len(known) > 1:
        print(file, *sorted(known))
"""


@pytest.mark.deep("imports all modules and libraries in a new process, for 20 CPU seconds")
def test_every_module_is_imported_under_one_name() -> None:
    code = f"from pathlib import Path\nROOT = Path({str(ROOT.resolve())!r})\n{_IMPORT_ALL}"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )
    assert ran.returncode == 0, ran.stderr
    count, *twice = ran.stdout.splitlines()
    assert int(count) > 500
    assert twice == []
