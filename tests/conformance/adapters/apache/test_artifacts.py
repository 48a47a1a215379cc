"""Fetching Apache's jars, with a replacement for Maven: the tests need no network and no Java."""

from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache import artifacts
from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, jars, releases

FETCHES = """#!/bin/sh
for argument; do case "$argument" in -DoutputDirectory=*) target="${argument#*=}";; esac; done
mkdir -p "$target" && touch "$target/rocketmq-broker-9.9.9.jar" && echo once >> "$COUNT"
"""
FAILS = """#!/bin/sh
echo '[INFO] looking'; echo '[ERROR] nothing there'; echo '[ERROR] more words'; exit 1
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide an empty cache, and a PATH whose `mvn` the test chooses."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    monkeypatch.setenv(artifacts.CACHE_VARIABLE, str(tmp_path / "cache"))
    jars.cache_clear()
    return tmp_path


def _maven(site: Path, script: str) -> None:
    program = site / "bin" / "mvn"
    program.write_text(script)
    program.chmod(0o755)


def test_a_release_is_fetched_once(site: Path) -> None:
    _maven(site, FETCHES)
    folder = jars("9.9.9")
    jars.cache_clear()  # as in a later process
    assert jars("9.9.9") == folder == site / "cache" / "9.9.9"
    assert [path.name for path in folder.iterdir()] == ["rocketmq-broker-9.9.9.jar"]
    assert (site / "count").read_text() == "once\n"


def test_a_release_that_cannot_be_fetched_is_one_line_and_leaves_nothing(site: Path) -> None:
    _maven(site, FAILS)
    with pytest.raises(ApacheMissingError, match=r"^Apache RocketMQ 9\.9\.9: .*: nothing there$"):
        jars("9.9.9")
    assert list((site / "cache").iterdir()) == []


def test_files_written_before_a_maven_failure_are_discarded(site: Path) -> None:
    _maven(site, FETCHES + "exit 1\n")
    with pytest.raises(ApacheMissingError, match="Maven gave no reason"):
        jars("9.9.9")
    assert list((site / "cache").iterdir()) == []


def test_an_incomplete_release_is_not_used(site: Path) -> None:
    _maven(site, FETCHES)
    with pytest.raises(ApacheMissingError, match="Maven gave no reason"):
        jars("8.8.8")


def test_a_missing_maven_reports_how_to_continue(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(site / "bin"))
    with pytest.raises(ApacheMissingError, match="no mvn on the PATH: install Maven"):
        jars("9.9.9")
    with pytest.raises(ApacheMissingError, match="no java on the PATH: install a JDK"):
        artifacts.java()


def test_an_environment_variable_selects_the_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(artifacts.RELEASES_VARIABLE, raising=False)
    assert releases() == artifacts.RELEASES
    monkeypatch.setenv(artifacts.RELEASES_VARIABLE, "4.9.4, 5.3.3")
    assert releases() == ("4.9.4", "5.3.3")
