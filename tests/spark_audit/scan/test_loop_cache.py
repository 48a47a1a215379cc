"""The compiled code of loops is cached until one of its source files changes."""

import ast
import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import pytest

from mqproof.spark_audit.scan import loop_cache

AUDIT = "mqproof.spark_audit."
LOOPS = (
    *("passes.append_outcomes", "passes.bucket_sums", "passes.message_sums", "passes.row_selection"),
    *("scan.loops", "scan.traffic"),
)


def _imported(module: ModuleType) -> list[tuple[str, str]]:
    """Return the names imported from other files of the audit, with their files."""
    found = []
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        module_name = str(getattr(node, "module", ""))
        if isinstance(node, ast.ImportFrom) and module_name.startswith((f"{AUDIT}passes.", f"{AUDIT}scan.")):
            file = module_name.removeprefix(AUDIT).replace(".", "/") + ".py"
            found += [(file, name.name) for name in node.names]
    return found


def test_every_source_file_of_compiled_loops_is_listed() -> None:
    modules = [importlib.import_module(AUDIT + name) for name in LOOPS]
    compiled_in = {
        file
        for module in modules
        for file, name in _imported(module)
        if name.isupper() or getattr(getattr(module, name), "targetoptions", {}).get("inline") == "always"
    }
    assert compiled_in - {"scan/loop_cache.py"} == set(loop_cache.SOURCES)


def test_a_cached_loop_is_recompiled_when_a_source_file_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        "from mqproof.spark_audit.scan.loops import compiled",
        "@compiled",
        "def twice(n): return 2 * n",
    )
    (tmp_path / "doubling.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))

    def hits() -> int:
        """Import the loop again, as in a new process, and return its cache hits."""
        sys.modules.pop("doubling", None)
        twice: Any = importlib.import_module("doubling").twice
        assert twice(21) == 42
        return sum(twice.stats.cache_hits.values())

    assert [hits(), hits()] == [0, 1]
    monkeypatch.setattr(loop_cache, "_digest", lambda: "digest of other sources")
    assert [hits(), hits()] == [0, 1]
    settings: Any = numba.config
    assert not settings.CACHE_LOCATOR_CLASSES, "loops of other packages are cached as before"


def test_cache_files_of_another_version_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (
        "from typing import NamedTuple",
        "from mqproof.spark_audit.scan.loops import compiled",
        "class Pair(NamedTuple):",
        "    one: int",
        "@compiled",
        "def first(pair): return pair.one",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    # Both files have the same size and perhaps the same time, so the second could load the first's bytecode.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("Pair", "Twin"):
        (tmp_path / "pairing.py").write_text("\n".join(lines).replace("Pair", name))
        sys.modules.pop("pairing", None)
        importlib.invalidate_caches()
        pairing = importlib.import_module("pairing")
        assert pairing.first(getattr(pairing, name)(7)) == 7
