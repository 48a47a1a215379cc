"""A command receives a group of options as one argument, and its user sees each option."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from mqproof.report.option_groups import with_groups


@dataclass(frozen=True)
class Place:
    host: Annotated[str, typer.Option(help="Where it is.")] = "localhost"
    port: Annotated[int, typer.Option(min=1, help="On which port.")] = 80
    tags: Annotated[list[str] | None, typer.Option(help="Any number of them.")] = None


def call(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()

    def visit(*, name: Annotated[str, typer.Argument()], place: Place, loud: bool = False) -> None:
        """Print the name and the destination."""
        typer.echo((name, place, loud))

    app.command()(with_groups(visit))
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    return done.exit_code, done.output


def test_a_group_has_the_given_values_and_the_defaults_of_other_options() -> None:
    assert call("ann") == (0, f"{('ann', Place(), False)}\n")
    arguments = ("ann", "--port", "7", "--tags", "a", "--tags", "b", "--loud")
    assert call(*arguments) == (0, f"{('ann', Place(port=7, tags=['a', 'b']), True)}\n")


def test_options_of_a_group_are_validated_and_shown_in_the_help_text() -> None:
    code, output = call("ann", "--port", "0")
    assert (code, "--port" in output) == (2, True)
    code, output = call("--help")
    assert code == 0
    assert all(
        text in output
        for text in ("Print the name and the destination", "--host", "On which port", "default: 80")
    )
