"""Environments as users have them: outside the checkout, with the wheel and the libraries that it requires.

Nothing is downloaded. The libraries are copied from the environment that runs the tests, and only those that
the wheel's requirements name, directly or indirectly. A dependency that is not declared is therefore missing.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

ROOT: Final = Path(__file__).parents[2]
_SECONDS_MAX: Final = 300


def build_wheel(folder: Path, source: Path = ROOT) -> Path:
    """Build the wheel of this checkout, or of a source distribution, with pip and without the network."""
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source))
    (wheel,) = folder.glob("mqproof-*.whl")
    return wheel


def build_sdist(folder: Path) -> Path:
    """Build the source distribution of this checkout, without the network."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, env=clean_variables(), check=True, timeout=_SECONDS_MAX)
    (archive,) = folder.glob("mqproof-*.tar.gz")
    return archive


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with mqproof and no other project."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def command(self) -> Path:
        return self.folder / "bin" / "mqproof"

    @property
    def site_packages(self) -> Path:
        (found,) = self.folder.glob("lib/python3*/site-packages")
        return found

    def run(self, *command: str | Path, cwd: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command without the settings of the tests. Its output is text."""
        return subprocess.run(
            command,
            cwd=cwd,
            env=clean_variables(),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def files(self) -> Mapping[str, tuple[int, int]]:
        """Return each installed file with its size and modification time."""
        return {
            str(path.relative_to(self.site_packages)): (path.stat().st_size, path.stat().st_mtime_ns)
            for path in sorted(self.site_packages.rglob("*"))
            if path.is_file()
        }

    def sizes(self) -> Mapping[str, int]:
        """Return the bytes by top-level name in site-packages, with compiled bytecode."""
        sizes: dict[str, int] = {}
        for name, (size, _) in self.files().items():
            top = name.split("/")[0].partition("-")[0]
            sizes[top] = sizes.get(top, 0) + size
        return sizes


def clean_variables() -> dict[str, str]:
    """Return the environment variables without those that lead Python to the checkout."""
    ours = ("PYTHON", "PYTEST", "MQPROOF", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def environment(folder: Path, wheel: Path, *extras: str) -> Environment:
    """Create an environment in `folder` with `mqproof[extras]`."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=_SECONDS_MAX
    )
    made = Environment(folder)
    _pip("--python", str(made.python), "install", "--no-index", "--no-deps", str(wheel))
    own = Distribution.at(next(made.site_packages.glob("mqproof-*.dist-info")))
    for library in _closure(own, extras):
        _copy(library, made.site_packages)
    compiling = [str(made.python), "-m", "compileall", "-q", str(made.site_packages)]
    subprocess.run(compiling, check=True, timeout=_SECONDS_MAX)
    return made


@contextmanager
def serving(made: Environment, folder: Path) -> Iterator[str]:
    """Run `mqproof serve` in the folder. Yields the address of its name server."""
    command = [str(made.python), "-m", "mqproof", "serve", "--namesrv-port", "0", "--broker-port", "0"]
    command += ["--store", str(folder / "store"), "--events", str(folder / "events.ndjson")]
    with subprocess.Popen(
        command, cwd=folder, env=clean_variables(), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            ready = server.stdout.readline().split()
            assert ready[:1] == ["ready"], ready
            yield dict(word.split("=") for word in ready[1:])["namesrv"]
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(
        command, env=clean_variables(), capture_output=True, text=True, check=False, timeout=_SECONDS_MAX
    )
    assert done.returncode == 0, done.stderr


def _closure(first: Distribution, extras: Iterable[str]) -> Iterator[Distribution]:
    """Return the distributions that `first` requires, directly or indirectly, each once."""
    seen: set[tuple[str, str]] = set()
    given: set[str] = set()
    waiting = [(first, extra) for extra in ("", *extras)]
    while waiting:
        wanting, extra = waiting.pop()
        for text in wanting.requires or ():
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
                continue
            found = first if requirement.name == first.metadata["Name"] else distribution(requirement.name)
            for wanted in ("", *requirement.extras):
                if (key := (found.metadata["Name"], wanted)) not in seen:
                    seen.add(key)
                    waiting.append((found, wanted))
            if found is not first and found.metadata["Name"] not in given:
                given.add(found.metadata["Name"])
                yield found


def _copy(library: Distribution, site_packages: Path) -> None:
    for file in library.files or ():
        if ".." in file.parts or file.suffix == ".pyc":  # a script in bin/, a manual page; bytecode
            continue
        source, target = Path(str(file.locate())), site_packages / file
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
