"""Tests the style of help, suggestions, renamed options and completion of every command."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mqproof import cli
from mqproof.command_group import laid_out
from tests.commands import mqproof

MQPROOF = (sys.executable, "-m", "mqproof")


def completion(**environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run(MQPROOF, capture_output=True, text=True, timeout=120, check=False, env=env)


def every_command() -> Iterator[tuple[str, Any]]:
    """Return each command that does something, with its path."""
    root: Any = typer.main.get_command(cli.app)
    todo = [(name, root.get_command(None, name)) for name in cli.COMMANDS]
    while todo:
        path, command = todo.pop(0)
        inner = getattr(command, "commands", {})
        todo += [(f"{path} {name}", each) for name, each in inner.items()]
        if not inner or command.invoke_without_command:
            yield path, command


NO_VERBS = ("a", "the", "all", "every", "each", "one", "what", "where", "how", "our", "messages", "models")
"""Words that a help text began with before its first word had to be an imperative verb."""
EVERY = dict(every_command())


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (("chek",), "mqproof: no command 'chek'; did you mean 'check'?"),
        (("fuzz", "rum"), "mqproof fuzz: no command 'rum'; did you mean 'run'?"),
        (("check", "--profil", "ci"), "mqproof check: no such option: --profil; did you mean --profile?"),
        (("zzz",), "mqproof: no command 'zzz'; see mqproof --help"),
        (("send", "--count", "x"), "mqproof send: invalid value for '--count': "),
        (("send",), "mqproof send: missing option '--namesrv' (env var: 'NAMESRV_ADDR'); see mqproof send"),
    ],
)
def test_wrong_use_is_one_line_with_a_hint(typed: tuple[str, ...], hint: str) -> None:
    done = mqproof(*typed)
    assert done.returncode == 2
    assert done.stderr.startswith(hint)
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("path", EVERY)
def test_an_unknown_option_is_one_line_for_every_command(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["mqproof", *path.split(), "--no-such-option"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert shown.err.startswith(f"mqproof {path}: no such option: --no-such-option; ")
    assert shown.err.count("\n") == 1
    assert shown.out == ""


@pytest.mark.parametrize("path", EVERY)
def test_every_command_has_the_same_style_of_help(path: str) -> None:
    command = EVERY[path]
    assert command.rich_markup_mode is None
    assert command.context_settings["help_option_names"] == ["-h", "--help"]
    first, *_ = command.help.split()
    assert re.fullmatch(r"[A-Z][a-z-]+", first), first
    assert first.lower() not in NO_VERBS
    if not path.startswith("admin "):  # the group has the examples
        assert "Example" in command.help


@pytest.mark.parametrize("path", EVERY)
def test_help_lists_exit_codes_in_one_wording(path: str) -> None:
    paragraphs = (EVERY[path].help or "").split("\n\n")
    for text in (" ".join(each.split()) for each in paragraphs if re.search("exit (code|[0-9])", each, re.I)):
        codes, *_ = re.findall(r"^Exit codes: (0 .*)\.$", text)
        numbers = [each.partition(" ")[0] for each in codes.split("; ")]
        assert numbers == sorted(set(numbers) & set("01234")), text


@pytest.mark.parametrize("path", EVERY)
def test_help_says_whether_an_option_takes_a_file_or_a_folder(path: str) -> None:
    """Only the logs that a command reads may be either."""
    options = {name: each for each in EVERY[path].params for name in each.opts}
    either = {name for name, each in options.items() if each.metavar == "PATH"}
    logs = {
        "audit run": {"--events", "--spans"},
        "audit explain": {"--events", "--spans"},
        "diagnose": {"--log"},
    }
    assert either <= logs.get(path, set())
    for name in {"--json", "--tls", "--account", "--models"} & set(options):
        assert options[name].metavar == "FILE" or options[name].is_flag, name


def test_an_old_option_name_still_works_and_warns() -> None:
    done = mqproof("conform", "--target", "reference", "--dryrun", "--id", "FLUSH-4")
    assert done.returncode == 0
    assert done.stderr == "mqproof conform: --dryrun is deprecated, use --dry-run\n"
    assert "FLUSH-4" in done.stdout


def test_the_version_is_printed() -> None:
    assert re.fullmatch(r"mqproof \d+\.\d+\.\d+\S*\n", mqproof("--version").stdout)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("mqproof co", ["coverage", "consume", "console", "conform", "convert-history", "completion"]),
        ("mqproof fuzz re", ["replay"]),
        ("mqproof audit run --ev", ["--events"]),
        ("mqproof --ver", ["--version"]),
        ("mqproof nonsense x", []),
    ],
)
def test_the_shell_completes_commands_and_options(words: str, completed: list[str]) -> None:
    last = str(len(words.split()) - 1)
    done = completion(COMP_WORDS=words, COMP_CWORD=last, _MQPROOF_COMPLETE="complete_bash")
    assert (done.returncode, done.stdout.split()) == (0, completed)


def test_completing_a_command_does_not_import_it() -> None:
    code = (
        "import sys, atexit; from mqproof.cli import main; "
        "atexit.register(lambda: print([m for m in sys.modules if m.startswith(('pyspark', 'mqproof.'))])); "
        "main()"
    )
    env = {**os.environ, "COMP_WORDS": "mqproof ", "COMP_CWORD": "1", "_MQPROOF_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, env=env
    )
    *names, modules = done.stdout.splitlines()
    assert names == list(cli.COMMANDS)
    ours = {"mqproof.cli", "mqproof.command_group", "mqproof.log_options", "mqproof.standard_streams"}
    assert set(eval(modules)) <= ours | {"mqproof.extras", "mqproof.log_limits"}


def test_examples_keep_their_line_breaks() -> None:
    text = "Do it.\n\nExamples: mqproof a b;\nmqproof c 'd; e'\n\nTable:\n  x\n  y"
    expected = "Do it.\n\n\b\nExamples:\n  mqproof a b\n  mqproof c 'd; e'\n\n\b\nTable:\n  x\n  y"
    assert laid_out(text) == expected
    assert laid_out(expected) == expected


def test_the_command_line_page_lists_the_renamed_options() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    for names in cli.RENAMED.values():
        for old, new in names.items():
            assert f"| `{old}` | `{new}`" in page
