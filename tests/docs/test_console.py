"""The runner of documentation pages detects commands that do not have the shown result."""

from pathlib import Path

import pytest

from tests.docs.console import Command, NewFile, PageError, first_missing, run_page, steps

PAGE = """
A page.

```sh
pip install mqproof
```

```toml title="a/settings.toml"
x = 1
```

```console
$ cat a/settings.toml
x = ...
$ sleep 0.2 && echo "port 9876" &
port 9876
$ printf 'one\\n two   three\\nfour\\n'; \\
  false
one
...
two three
$ echo $?
1
```
"""


def page(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "page.md"
    path.write_text(text)
    return path


def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


def test_the_steps_of_a_page_are_its_files_and_commands() -> None:
    found = list(steps(PAGE))
    assert found[0] == NewFile("a/settings.toml", "x = 1\n")
    assert found[1] == Command("cat a/settings.toml", ("x = ...",))
    assert found[3] == Command("printf 'one\\n two   three\\nfour\\n'; \\\n  false", ("one", "two three"))


def test_a_page_with_correct_output_passes(tmp_path: Path) -> None:
    run_page(page(tmp_path, PAGE), folder(tmp_path))


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("x = ...", "y = ...", "lacks: y = ..."),
        ("two three\n$", "four\ntwo three\n$", "lacks: two three"),
        ("\n1\n", "\n2\n", "lacks: 2"),
        ("$ echo $?\n1\n", "", "exit code 1"),
    ],
)
def test_a_page_with_wrong_output_or_exit_code_fails(
    right: str, wrong: str, message: str, tmp_path: Path
) -> None:
    assert right in PAGE
    with pytest.raises(PageError, match=message.replace(".", r"\.").replace("?", r"\?")):
        run_page(page(tmp_path, PAGE.replace(right, wrong)), folder(tmp_path))


def test_slow_blocks_run_only_in_the_deep_tests() -> None:
    page = "```console\n$ true\n```\n\n<!-- deep: a minute of kills -->\n```console\n$ sleep 60\n```\n"
    assert list(steps(page)) == [Command("true", ())]
    assert list(steps(page, deep=True)) == [Command("true", ()), Command("sleep 60", ())]


def test_three_dots_match_any_text_in_a_line() -> None:
    output = ["ready namesrv=127.0.0.1:1 broker=127.0.0.1:2", "  3   held"]
    assert first_missing(["ready ... broker=...", "3 held"], output) is None
    assert first_missing(["3 held", "ready ..."], output) == "ready ..."
    assert first_missing(["3 hel"], output) == "3 hel"
