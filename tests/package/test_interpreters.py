"""Tests the bare package on each version of Python in the classifiers that this machine has."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.package.environments import ROOT, Environment, clean_variables, serving

pytestmark = pytest.mark.xdist_group("package")

_VERSION = re.compile(r"Programming Language :: Python :: (3\.\d+)$")
CLASSIFIERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
VERSIONS = [found[1] for classifier in CLASSIFIERS if (found := _VERSION.match(classifier))]


def interpreter(version: str) -> Path | None:
    """Return the Python of this version on the PATH or under pyenv; None if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [*pyenv.glob(f"versions/{version}.*/bin/python")]
    if on_path := shutil.which(f"python{version}"):
        candidates.append(Path(on_path))
    return next((path for path in candidates if _is_version(path, version)), None)


def _is_version(python: Path, version: str) -> bool:
    """A command of pyenv on the PATH may not start, if its version is not selected."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    return ran.stdout.strip() == version


def test_the_oldest_tested_version_is_the_required_one() -> None:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert required == f">={VERSIONS[0]}"


@pytest.mark.deep("pip downloads the libraries for that version")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_bare_package_works_on_every_version(version: str, wheel: Path, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"not tested: there is no Python {version} here")
    made = Environment(tmp_path / "environment")
    for command in (
        [str(python), "-m", "venv", str(made.folder)],
        [str(made.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)],
    ):
        subprocess.run(command, env=clean_variables(), check=True, timeout=300)
    with serving(made, tmp_path) as namesrv:
        where = ("--namesrv", namesrv, "--topic", "T")
        sent = made.run(made.command, "send", *where, "--body", "x", "--count", "10", cwd=tmp_path)
        assert sent.returncode == 0, sent.stderr
        got = made.run(made.command, "consume", *where, "--group", "G", "--from-min", cwd=tmp_path)
        assert got.returncode == 0, got.stderr
        assert len(got.stdout.splitlines()) == 10
        listed = made.run(made.command, "admin", "clusterList", "-n", namesrv, cwd=tmp_path)
        assert listed.returncode == 0, listed.stderr
