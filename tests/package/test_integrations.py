"""`mqproof.integrations` loads a library only for the name that needs it, and names a missing extra."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mqproof import integrations

ROOT = Path(__file__).parents[2]


def test_every_public_name_exists_and_its_extra_is_declared() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {*integrations.__all__} == integrations._PLACES.keys()
    for name, (_, there, extra) in integrations._PLACES.items():
        assert getattr(integrations, name).__name__ == there
        assert extra in declared
        assert f"`{name}`" in (integrations.__doc__ or "")


def test_importing_the_module_loads_no_library() -> None:
    code = "import sys; before = {*sys.modules}; import mqproof.integrations; print(*{*sys.modules} - before)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    found = {name for name in ran.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert found == {"mqproof", "mqproof.integrations"}


def test_a_missing_library_is_reported_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integrations, "import_module", _without_library)
    with pytest.raises(ImportError, match=r"TaskiqBroker needs: pip install 'mqproof\[taskiq\]'"):
        integrations.__getattr__("TaskiqBroker")


def _without_library(name: str) -> None:
    raise ModuleNotFoundError(f"No module named 'taskiq', for {name}", name="taskiq")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Rabbit'"):
        integrations.__getattr__("Rabbit")
