"""The options about logging, the same for servers and for long commands: -v, -q, --log-level, --log-file."""

import logging
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mqproof.log_limits import FILE_BYTES_MAX, FILES_KEPT, RepeatLimit, rotate

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
_ON_TERMINAL: Final = "%(levelname)s %(name)s: %(message)s"
_HANDLER: Final = "mqproof"
_IN_FILE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_options = typer.Typer(add_completion=False)


@_options.command()
def _log(
    log_verbose: Annotated[
        int,
        typer.Option(
            "--verbose", "-v", count=True, show_default=False, help="Log more: -v is info, -vv is debug."
        ),
    ] = 0,
    log_quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Log errors only, and show no progress.")
    ] = False,
    log_level: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help=f"Log from this level: {', '.join(LEVELS)}.", show_default=False),
    ] = None,
    log_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append the log to this file instead of standard error; it is rotated at 64 MiB.",
        ),
    ] = None,
) -> None:
    """Declares the options, for `with_log_options` to copy."""


NAMES: Final = ("log_verbose", "log_quiet", "log_level", "log_file")
"""The parameters of the options."""


def with_log_options(command: Any) -> None:
    """Add the options to a typer command; its own options of the same letters or names stay as they are."""
    own = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    declared: Any = typer.main.get_command(_options)
    for option in declared.params:
        option.opts = [name for name in option.opts if name not in own]
        if option.name in NAMES and option.opts:
            command.params.append(option)
    inner = command.callback

    def callback(**given: Any) -> Any:
        verbose, quiet, level, file = (given.pop(name, None) for name in NAMES)
        configure(verbose or 0, bool(quiet), level, file)
        return inner(**given)

    command.callback = callback


def configure(verbose: int, quiet: bool, level: str | None, file: Path | None) -> None:
    """Set up the root logger as the options say; by default warnings and errors go to standard error.

    Levels below WARNING count for mqproof's own loggers: those of libraries are of no use to an operator.

    Raises:
        typer.BadParameter: the options contradict each other, the level is unknown, or the file cannot be
            opened.
    """
    given = {"-v": verbose, "-q": quiet, "--log-level": level}
    if len(chosen := [name for name, value in given.items() if value]) > 1:
        raise typer.BadParameter(f"give one of {' and '.join(chosen)}")
    if level is not None and level.lower() not in LEVELS:
        raise typer.BadParameter(f"--log-level {level}: expected one of {', '.join(LEVELS)}")
    number = logging.ERROR if quiet else max(logging.DEBUG, logging.WARNING - 10 * verbose)
    if level is not None:
        number = logging.getLevelNamesMapping()[level.upper()]
    root = logging.getLogger()
    _replace_handler(root, file)
    root.setLevel(max(number, logging.WARNING))
    logging.getLogger("mqproof").setLevel(number)


def _replace_handler(root: logging.Logger, file: Path | None) -> None:
    """Remove the handler of an earlier call. An application's own handlers stay, and are sufficient."""
    for each in [each for each in root.handlers if each.name == _HANDLER]:
        root.removeHandler(each)
        each.close()
    if file is None and root.handlers:
        return
    try:
        handler: logging.Handler = logging.StreamHandler() if file is None else _rotating(file)
    except OSError as error:
        raise typer.BadParameter(f"--log-file {file}: {error.strerror}") from None
    handler.set_name(_HANDLER)
    handler.addFilter(RepeatLimit())
    handler.setFormatter(logging.Formatter(_ON_TERMINAL if file is None else _IN_FILE))
    root.addHandler(handler)


def _rotating(file: Path) -> logging.Handler:
    from logging.handlers import RotatingFileHandler  # imports sockets; without --log-file it is not needed

    handler = RotatingFileHandler(file, maxBytes=FILE_BYTES_MAX, backupCount=FILES_KEPT, encoding="utf-8")
    handler.rotator = rotate
    return handler
