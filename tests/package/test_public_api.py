"""Tests the public API: its content, the low cost of importing it, and its types."""

import subprocess
import sys
from pathlib import Path

import pytest

import mqproof
from mqproof import client
from tests.package import public_api

ROOT = Path(__file__).parents[2]


def test_the_public_api_equals_the_committed_file() -> None:
    """Write the file with `python -m tests.package.public_api`, so that a review shows each change."""
    assert public_api.describe() == public_api.FILE.read_text(encoding="utf-8")


def test_the_package_exports_names_of_the_client() -> None:
    names = set(mqproof.__all__) - {"__version__"}
    assert names <= set(client.__all__)
    assert all(getattr(mqproof, name) is getattr(client, name) for name in names)
    assert set(mqproof.__all__) <= set(dir(mqproof))


def test_the_version_is_that_of_the_distribution() -> None:
    assert f'\nversion = "{mqproof.__version__}"\n' in (ROOT / "pyproject.toml").read_text()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'mqproof' has no attribute 'Producers'"):
        mqproof.Producers  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_no_part_and_no_library() -> None:
    code = "import sys; before = {*sys.modules}; import mqproof; print(*{*sys.modules} - before)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = {name for name in ran.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert loaded == {"mqproof"}
