"""The page of all commands and their options, from the command line itself."""

import re
from collections.abc import Iterator
from typing import Any, Final

import typer

from docs_site.markdown import code, escaped, table
from mqproof import cli, log_options
from mqproof.report.markdown import anchor

_UNWRAPPED: Final = "\b\n"

_HEAD: Final = """# Commands

Every command of `mqproof`, generated from the command line when the site is built. `mqproof COMMAND
--help` prints the same text. Exit codes are in [Exit codes](exit-codes.md); output, log options and
completion are in [The command line](command-line.md).
"""


def page() -> str:
    """Return the page as Markdown."""
    chapters = list(commands())
    overview = table(
        ["command", "purpose"],
        ([f"[{code(name)}](#{anchor(f'mqproof {name}')})", text] for name, (_, text) in cli.COMMANDS.items()),
    )
    return "\n".join([_HEAD, overview, *(_chapter(name, context) for name, context in chapters)])


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command, subcommands included: its full name and its Click context."""
    group: Any = typer.main.get_command(cli.app)
    root = group.make_context("mqproof", [], resilient_parsing=True)
    for name in group.list_commands(root):
        yield from _tree(name, group.get_command(root, name), root)


def options(context: Any) -> list[Any]:
    """Return the options that the help of the command shows, without those about the log."""
    return [
        each
        for each in context.command.params
        if each.param_type_name == "option" and not each.hidden and each.name not in log_options.NAMES
    ]


def _tree(name: str, command: Any, parent: Any) -> Iterator[tuple[str, Any]]:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    yield context.command_path, context
    for each, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _tree(each, inner, context)


def _chapter(name: str, context: Any) -> str:
    command = context.command
    level = "##" if name.count(" ") == 1 else "###"
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"{level} {name}", f"```\n{usage}\n```", _described(command.help or "")]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    if rows := [*_rows(arguments, context), *_rows(options(context), context)]:
        parts.append(table(["option", "default", "meaning"], rows))
    if any(each.name in log_options.NAMES for each in command.params):
        parts.append("It also has the [log options](command-line.md#log).\n")
    return "\n\n".join(parts)


def _rows(params: list[Any], context: Any) -> Iterator[list[str]]:
    for param in params:
        names, text = _record(param, context)
        yield [code(names), _default(param, context), escaped(text)]


def _record(param: Any, context: Any) -> tuple[str, str]:
    """Return the parameter's names with its value's placeholder, and its help text with the range as code."""
    if param.param_type_name == "argument":
        return param.make_metavar(context), param.help or ""
    names, text = param.get_help_record(context)
    text, _, notes = text.partition("  [")
    if limits := re.search(r"[\d.<=]*x[<>=]+[\d.<=]+|[\d.]+<=?x\b", notes):
        text += f" `{limits[0]}`"
    return names, text


def _default(param: Any, context: Any) -> str:
    if param.required:
        return "required"
    value = param.get_default(context)
    if (
        value is None
        or value is False
        or value in ("", ())
        or (param.param_type_name == "argument" and not value)
    ):
        return ""
    if value is True:
        return "on"
    return code(" ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))


def _described(text: str) -> str:
    """The help as Markdown: paragraphs, and code blocks where the help has lines of its own."""
    return "\n\n".join(map(_paragraph, re.split(r"\n\s*\n", text.strip())))


def _paragraph(text: str) -> str:
    if not text.startswith(_UNWRAPPED):
        return escaped(text)
    lines = text.removeprefix(_UNWRAPPED).splitlines()
    first = lines[0]
    kept = [line.strip() for line in lines[1:]]
    if one := re.fullmatch(r"(Examples?:) (mqproof .*)", first):
        first, kept = one[1], [one[2], *kept]
    return f"{escaped(first)}\n\n```\n" + "\n".join(kept) + "\n```" if kept else escaped(first)
