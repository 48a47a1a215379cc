"""Goal: the page of commands has every command and every option, with examples, defaults and ranges."""

import re

import pytest

from docs_site import commands
from mqproof import cli


@pytest.fixture(scope="module", name="page")
def _page() -> str:
    return commands.page()


def test_every_command_has_a_section_and_a_row_in_the_overview(page: str) -> None:
    for name in cli.COMMANDS:
        assert f"\n## mqproof {name}\n" in page
        assert f"| [`{name}`](#mqproof-{name}) |" in page


def test_subcommands_have_sections(page: str) -> None:
    for name in ("admin updateTopic", "audit run", "fuzz replay", "conform diff", "store verify"):
        assert f"\n### mqproof {name}\n" in page


def test_every_option_of_every_command_is_on_the_page(page: str) -> None:
    missing = []
    for name, context in commands.commands():
        start = re.search(rf"(?m)^##+ {re.escape(name)}$", page)
        assert start is not None, name
        section = page[start.end() :].partition("\n##")[0]
        missing += [(name, each.opts) for each in commands.options(context) if each.opts[0] not in section]
    assert missing == []


def test_commands_link_to_the_description_of_the_log_options(page: str) -> None:
    assert "--log-file" not in page
    assert "It also has the [log options](command-line.md#log)." in page


def test_examples_are_code_blocks_with_their_line_breaks(page: str) -> None:
    examples = "mqproof mutants --layer impl\nmqproof mutants --layer reference --only AckBeforeFlush"
    assert f"```\n{examples}\n```" in page


def test_defaults_and_ranges_of_options_are_shown(page: str) -> None:
    assert re.search(r"^\| `--messages N` \| `5000` \| .*`x>=100` \|$", page, re.MULTILINE)
    assert "| `--workers N` |  | Threads of each TLC, instead of those in models.toml. `x>=1` |" in page
    assert "[default" not in page


def test_the_page_has_no_control_character(page: str) -> None:
    assert "\b" not in page
