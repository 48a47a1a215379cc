"""The group of all commands: loads a command when it is used, and gives all commands the same style.

Names, suggestions and shell completion need no import of a command. Only the command that runs is imported.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar, Final, NoReturn

import typer
from typer.core import CompletionItem, TyperGroup  # type: ignore[attr-defined]  # part of its interface

from mqproof.log_options import with_log_options

HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Context settings of every command: the options that print its help, and the columns it may fill."""
WRONG_USE: Final = 2
"""Equal to `mqproof.report.model.Exit.USAGE`, which is not imported so that a broker starts fast."""

_METAVARS: Final = {
    "<int>": "N",
    "<int range>": "N",
    "<float>": "N",
    "<float range>": "N",
    "<str>": "TEXT",
    "<list[str]>": "TEXT",
    "<path>": "PATH",
    "<list[Path]>": "PATH",
    "<list[path]>": "PATH",
}
"""How help shows the values of options without a metavar."""
_UNWRAPPED: Final = "\b\n"
"""Click's mark for a paragraph whose line breaks are kept."""


class LazyGroup(TyperGroup):
    """Has every command by name, and imports a command on demand. Subclasses fill in the tables."""

    summaries: ClassVar[Mapping[str, str]] = {}
    """Maps a command name to its help in one line."""
    renamed: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Maps a command, with its subcommand, to its old option names, which still work, and the new ones."""
    silent: ClassVar[frozenset[str]] = frozenset()
    """Commands that log nothing and therefore have no logging options."""

    def load(self, name: str) -> typer.Typer:
        """Import the app that has the command of this name."""
        raise NotImplementedError

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # the signature is typer's
        return list(self.summaries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # the signature is typer's
        if cmd_name not in self.summaries:
            return None
        group: Any = typer.main.get_command(self.load(cmd_name))
        command = group.commands[cmd_name]
        for each in _tree(command):
            _set_style(each)
            _set_name(each)
            if cmd_name not in self.silent and _runs(each):
                with_log_options(each)
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in self.summaries and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name, self.summaries, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see mqproof --help"
            _fail(f"mqproof: no command {name!r}; {hint}")
        return super().resolve_command(ctx, [name, *self._with_new_names(name, args[1:])])

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # the signature is typer's
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        matching = {name: text for name, text in self.summaries.items() if name.startswith(incomplete)}
        return [CompletionItem(name, help=text) for name, text in matching.items()]

    def _with_new_names(self, command: str, arguments: list[str]) -> list[str]:
        """Return the arguments with old option names replaced, after printing a warning for each."""
        inner = f"{command} {arguments[0]}" if arguments else command
        path = inner if inner in self.renamed else command
        names = self.renamed.get(path, {})
        end = arguments.index("--") if "--" in arguments else len(arguments)
        found = list(arguments)
        for place, argument in enumerate(arguments[:end]):
            name, sign, value = argument.partition("=")
            if name in names:
                found[place] = f"{names[name]}{sign}{value}"
                print(f"mqproof {path}: {name} is deprecated, use {names[name]}", file=sys.stderr)
        return found


def run(app: typer.Typer) -> int:
    """Run the command line and return its exit code. Wrong use is one line on standard error.

    Raises:
        SystemExit: from a command that ends with it.
    """
    try:
        code = app(prog_name="mqproof", standalone_mode=False)
    except typer.Abort:
        return 130
    except Exception as error:
        # Typer's own exceptions have no public base class.
        if not hasattr(error, "format_message"):
            raise
        _fail(_complaint(error))
    return code if isinstance(code, int) else 0


def _complaint(error: Any) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "mqproof"
    if type(error).__name__ == "NoArgsIsHelpError":
        return str(error.format_message())
    if possible := getattr(error, "possibilities", None):
        return f"{command}: no such option: {error.option_name}; did you mean {possible[0]}?"
    message = " ".join(error.format_message().split()).removeprefix("Invalid value: ")
    message = message.replace(": Value error, ", ": ")
    message = message.replace("No such command", "no command").replace(". Did you mean", "; did you mean")
    message = message[:1].lower() + message[1:].rstrip(".")
    return f"{command}: {message}" + ("" if message.endswith("?") else f"; see {command} --help")


def _fail(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(WRONG_USE)


def _tree(command: Any) -> Iterator[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _tree(each)


def _runs(command: Any) -> bool:
    """Return whether the command does something itself, and is not only a group of others."""
    return not hasattr(command, "commands") or bool(command.invoke_without_command)


def _set_name(command: Any) -> None:
    """Let the lines that the command prints on standard error begin with all words of its name."""
    from mqproof.report.running_command import beginning, running  # not needed to complete a command

    made, invoked = command.make_context, command.invoke

    def make_context(info_name: str, args: list[str], parent: Any = None, **extra: Any) -> Any:
        above = parent.command_path if parent else beginning()
        with running(f"{above} {info_name}"):
            return made(info_name, args, parent=parent, **extra)

    def invoke(context: Any) -> Any:
        with running(context.command_path):
            return invoked(context)

    command.make_context, command.invoke = make_context, invoke


def _set_style(command: Any) -> None:
    """Set plain help texts: no boxes, examples on separate lines, -h as well as --help."""
    command.rich_markup_mode = None
    command.context_settings = {**command.context_settings, **HELP}
    if (command.epilog or "").startswith("Example"):
        examples = [line for line in command.epilog.splitlines() if line.strip()]
        command.help, command.epilog = "\n".join([f"{command.help}\n", *examples]), None
    command.help = laid_out(command.help or "")
    for param in command.params:
        if param.metavar is None and param.param_type_name == "option":
            # Typer 0.29 renamed the method.
            shown = getattr(param, "display_type", None) or param.make_metavar
            param.metavar = _METAVARS.get(shown(ctx=None))


def laid_out(text: str) -> str:
    """Return the help text with its examples, and other indented paragraphs, protected from wrapping.

    An example may be written as `Example: mqproof ...`, several as `Examples: mqproof ...;  mqproof ...`.
    """
    return "\n\n".join(_paragraph(each) for each in re.split(r"\n\s*\n", text.strip()))


def _paragraph(text: str) -> str:
    text = text.removeprefix(_UNWRAPPED)
    if one_line := re.fullmatch(r"(Examples?:) (mqproof .*)", text, re.DOTALL):
        examples = re.split(r";\s+(?=mqproof )", " ".join(one_line[2].split()))
        return "\n  ".join([f"{_UNWRAPPED}{one_line[1]}", *examples])
    return f"{_UNWRAPPED}{text}" if "\n  " in text else text
