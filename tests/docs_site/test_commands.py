"""Goal: the page of commands has every command and every option, and shows them as a reader needs them."""

import re

from docs_site import commands
from mqproof import cli

PAGE = commands.page()


def test_every_command_has_a_chapter_and_a_row_in_the_overview() -> None:
    for name in cli.COMMANDS:
        assert f"\n## mqproof {name}\n" in PAGE
        assert f"| [`{name}`](#mqproof-{name}) |" in PAGE


def test_subcommands_have_chapters() -> None:
    for name in ("admin updateTopic", "audit run", "fuzz replay", "conform diff", "store verify"):
        assert f"\n### mqproof {name}\n" in PAGE


def test_every_option_of_every_command_is_on_the_page() -> None:
    missing = []
    for name, context in commands.commands():
        start = re.search(rf"(?m)^##+ {re.escape(name)}$", PAGE)
        assert start is not None, name
        chapter = PAGE[start.end() :].partition("\n##")[0]
        missing += [(name, each.opts) for each in commands.options(context) if each.opts[0] not in chapter]
    assert missing == []


def test_the_log_options_are_described_once() -> None:
    assert "--log-file" not in PAGE
    assert "It also has the [log options](command-line.md#log)." in PAGE


def test_examples_are_code_and_keep_their_lines() -> None:
    examples = "mqproof mutants --layer impl\nmqproof mutants --layer reference --name AckBeforeFlush"
    assert f"```\n{examples}\n```" in PAGE


def test_defaults_and_ranges_are_shown() -> None:
    assert "| `--messages N` | `6000` | How many messages the real run sends. `x>=100` |" in PAGE
    assert "| `--workers N` |  | Threads of each TLC, instead of those in models.toml. `x>=1` |" in PAGE
    assert "[default" not in PAGE


def test_the_page_has_no_control_character() -> None:
    assert "\b" not in PAGE
