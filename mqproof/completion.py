"""`mqproof completion`: the script that lets a shell complete commands and options."""

from enum import StrEnum
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


class Shell(StrEnum):
    """The shells whose scripts are tested."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.callback()
def _root() -> None:
    """Let typer keep `completion` as a named command although the app has only this one."""


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print a completion script for a shell. mqproof --install-completion installs it for the current one.

    Examples: mqproof completion bash > ~/.local/share/bash-completion/completions/mqproof;
    mqproof completion zsh > ~/.zfunc/_mqproof;
    mqproof completion fish > ~/.config/fish/completions/mqproof.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # not in its __all__

    print(get_completion_script(prog_name="mqproof", complete_var="_MQPROOF_COMPLETE", shell=shell.value))
