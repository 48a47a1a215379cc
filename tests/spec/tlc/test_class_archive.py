"""The first run writes the archive of TLC's classes, later runs load it, and no other user can change it."""

from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.spec.tlc.class_archive import archive_options
from mqproof.spec.tlc.run import Job, run
from mqproof.spec.tlc.toolbox import find_toolbox
from tests.spec.tlc.counter import CONFIG, DISTINCT, LIBRARIES

JOB = Job("Counter", CONFIG, LIBRARIES, brief=True)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "mqproof"


def _given() -> list[str]:
    with archive_options(find_toolbox()) as options:
        return [option.partition("=")[0] for option in options]


def test_the_first_run_writes_the_archive_and_the_next_one_loads_it(cache: Path) -> None:
    assert _given() == ["-XX:ArchiveClassesAtExit", "-Xlog:disable"]
    assert run(JOB).distinct == DISTINCT
    if not list(cache.iterdir()):
        pytest.skip("this Java has no archive of its own classes, which ours extends")
    (archive,) = cache.iterdir()
    assert _given() == ["-XX:SharedArchiveFile", "-Xlog:disable"]
    assert run(JOB).distinct == DISTINCT
    archive.chmod(0o600)
    archive.write_bytes(b"no archive")
    assert run(JOB).distinct == DISTINCT, "Java runs without it"


def test_a_cache_that_others_can_write_is_not_used(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    assert _given() == []


def test_a_cache_that_cannot_be_made_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert _given() == []


def test_an_old_java_has_no_archive(cache: Path) -> None:
    tools = find_toolbox()
    with archive_options(replace(tools, java=replace(tools.java, major=11))) as options:
        assert options == []
    assert not cache.exists()
