"""Tests that an option's name has one meaning in all commands, and a meaning one name.

Method: walk the tree of commands, and compare what the options of one name take, what one letter stands for,
and the names of options with one help text.
"""

from collections import defaultdict
from typing import Any, Final

import pytest

from mqproof import cli
from tests.test_command_group import EVERY

MQADMIN: Final = "admin "
"""The commands with names and letters of RocketMQ's mqadmin, where one letter stands for many names."""

OTHER_VALUE: Final = {
    ("consume", "--json"): "each message is a line of the output itself; no file is written",
}
"""The options whose value differs from that of their name in other commands, with the reason."""


def options() -> list[tuple[str, Any]]:
    """Return every option of our own commands, with the command."""
    return [
        (path, each)
        for path, command in EVERY.items()
        if not path.startswith(MQADMIN)
        for each in command.params
        if each.param_type_name == "option"
    ]


def value(option: Any) -> str:
    """Return the kind of value that an option takes."""
    if option.is_flag or option.count:
        return "none"
    if option.type.name.startswith(("int", "float")):
        return "a number"
    if option.type.name == "path" or any(word in (option.metavar or "") for word in ("FILE", "DIR", "PATH")):
        return "a path"
    return "a time" if option.type.name == "datetime" else "a text"


def test_options_of_one_name_take_the_same_kind_of_value() -> None:
    kinds: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path, option in options():
        for name in (*option.opts, *option.secondary_opts):
            if (path, name) not in OTHER_VALUE:
                kinds[name][value(option)].append(path)
    assert {name: dict(found) for name, found in kinds.items() if len(found) > 1} == {}


@pytest.mark.parametrize(("path", "name"), OTHER_VALUE)
def test_an_exception_is_needed_and_has_a_reason(path: str, name: str) -> None:
    found = {each: value(option) for each, option in options() if name in option.opts}
    assert found.pop(path) not in found.values()
    assert OTHER_VALUE[path, name]


def test_a_letter_stands_for_one_option() -> None:
    names: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for _, option in options():
        long = tuple(name for name in option.opts if name.startswith("--"))
        for letter in set(option.opts) - set(long):
            names[letter].add(long)
    assert {letter: found for letter, found in names.items() if len(found) > 1} == {}
    assert set(names) == {"-c", "-v", "-q"}


def test_options_of_one_help_text_have_one_name() -> None:
    names: dict[str, set[str]] = defaultdict(set)
    for _, option in options():
        names[option.help].add(max(option.opts, key=len))
    assert {text: found for text, found in names.items() if len(found) > 1} == {}


def test_invariants_are_selected_by_one_option() -> None:
    selecting = {path: option for path, option in options() if "--id" in option.opts}
    assert set(selecting) == {"coverage", "conform", "audit run", "audit cluster"}
    assert all(option.metavar == "GLOB" and option.multiple for option in selecting.values())


@pytest.mark.parametrize("path", cli.RENAMED)
def test_an_old_name_is_no_option_and_its_new_name_is_one(path: str) -> None:
    own = {name for option in EVERY[path].params for name in (*option.opts, *option.secondary_opts)}
    for old, new in cli.RENAMED[path].items():
        assert old not in own
        assert new in own


@pytest.mark.parametrize(
    ("typed", "old", "new"),
    [
        ("audit run --events /nowhere --check NOPE-1", "--check", "--id"),
        ("audit generate --events=9 --out /proc/x", "--events", "--count"),
        ("audit watch --state /proc/x --orderly g", "--orderly", "--orderly-group"),
        ("bench audit --events x", "--events", "--count"),
        ("bench broker --no-profile --sends x", "--no-profile", "--no-cpu-profile"),
        ("bench explore --workers x", "--workers", "--worker-counts"),
        ("mutants --name x", "--name", "--only"),
    ],
)
def test_an_old_name_works_in_its_command_with_a_warning(
    typed: str, old: str, new: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["mqproof", *typed.split()])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    first, second, *more = capsys.readouterr().err.splitlines()
    command = next(path for path in cli.RENAMED if typed.startswith(f"{path} "))
    assert first == f"mqproof {command}: {old} is deprecated, use {new}"
    assert "no such option" not in second
    assert (ended.value.code, more) == (2, [])


def test_a_name_that_is_old_in_one_command_keeps_its_meaning_in_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["mqproof", "audit", "run", "--events", "/nowhere"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "deprecated" not in capsys.readouterr().err
