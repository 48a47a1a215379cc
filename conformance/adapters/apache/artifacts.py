"""Apache's released jars: fetched once with Maven, and kept in a cache outside the source tree."""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from mqproof.conformance.engine.targets import UnknownTargetError

RELEASES: Final = ("4.9.5", "5.5.0")
"""The newest release of each line whose four modules and dependencies are available from Maven."""

CLIENT_RELEASES: Final = ("4.9.8", "5.5.0")
"""The newest release of each line whose client is available; that of 4.9 is newer than its servers."""

CACHE_VARIABLE: Final = "MQPROOF_APACHE_CACHE"
RELEASES_VARIABLE: Final = "MQPROOF_APACHE_RELEASES"

_MODULES: Final = ("broker", "namesrv", "tools", "client")
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_SECONDS_MAX: Final = 900.0

_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>mqproof</groupId><artifactId>apache</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY: Final = (
    "<dependency><groupId>org.apache.rocketmq</groupId>"
    "<artifactId>rocketmq-{module}</artifactId><version>{release}</version></dependency>"
)


class ApacheMissingError(Exception):
    """Java, Maven or a release is not available.

    The message is one line: what is missing, and what to do about it.
    """


def releases() -> tuple[str, ...]:
    """Return the releases to use: RELEASES, or those in the environment variable, separated by commas."""
    named = os.environ.get(RELEASES_VARIABLE, "")
    return tuple(part.strip() for part in named.split(",") if part.strip()) or RELEASES


def release_of(line: str) -> str:
    """Return the release for a line, as in `apache:5`, or the release itself. Raises UnknownTargetError."""
    release = next((known for known in releases() if known == line or known.startswith(f"{line}.")), None)
    if release is None:
        raise UnknownTargetError(f"apache:{line}: expected a release of {', '.join(releases())}")
    return release


def program(name: str, hint: str) -> str:
    """Return the path of a required program. Raises ApacheMissingError."""
    if (path := shutil.which(name)) is None:
        raise ApacheMissingError(f"Apache RocketMQ: no {name} on the PATH: {hint}")
    return path


def java() -> str:
    """Return the path of java. Raises ApacheMissingError."""
    return program("java", "install a JDK 17")


@cache
def jars(release: str) -> Path:
    """Return the folder with the jars of the release and of its dependencies; the first call fetches them.

    Raises:
        ApacheMissingError: they are not in the cache, and Maven is missing or cannot fetch them.
    """
    return _fetched(cache_folder() / release, release, _MODULES)


@cache
def client_class_path(release: str) -> str:
    """Return the class path of the client of a release; the first call fetches it.

    Raises:
        ApacheMissingError: as `jars`.
    """
    return f"{_fetched(cache_folder() / f'client-{release}', release, ('client',))}/*"


def _fetched(folder: Path, release: str, modules: tuple[str, ...]) -> Path:
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{release}-") as scratch:
            fetched = _fetch(release, modules, Path(scratch))
            # The folder is renamed when it is complete, so an interrupted fetch leaves nothing that looks
            # like a release.
            if not folder.is_dir():
                fetched.rename(folder)
    return folder


def class_path(release: str) -> str:
    """Return the class path for `java -cp`. Raises ApacheMissingError, like `jars`."""
    return f"{jars(release)}/*"


def cache_folder() -> Path:
    """Return the folder that keeps what was fetched and compiled."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(user_cache) / "mqproof" / "apache"


def _fetch(release: str, modules: tuple[str, ...], scratch: Path) -> Path:
    maven = program("mvn", "install Maven, or copy the cache from a machine that has it")
    pom, target = scratch / "pom.xml", scratch / "jars"
    dependencies = "".join(_DEPENDENCY.format(module=module, release=release) for module in modules)
    pom.write_text(_POM.format(dependencies=dependencies), encoding="utf-8")
    command = [maven, "-B", "-q", "-f", str(pom), _COPY, f"-DoutputDirectory={target}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        raise ApacheMissingError(
            f"Apache RocketMQ {release}: Maven did not download it within {_SECONDS_MAX:.0f} s; try again"
        ) from None
    if done.returncode != 0 or not any(target.glob(f"rocketmq-{modules[0]}-{release}.jar")):
        raise ApacheMissingError(
            f"Apache RocketMQ {release}: Maven cannot fetch it: {_complaint(done.stdout)}"
        )
    return target


def _complaint(output: str) -> str:
    """Return Maven's first error in one line of limited length."""
    errors = (line.removeprefix("[ERROR]").strip() for line in output.splitlines() if "ERROR" in line)
    return next(errors, "Maven gave no reason")[:300]
