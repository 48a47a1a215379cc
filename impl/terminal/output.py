"""Writes a command's machine-readable result."""

from pathlib import Path

from mqproof.impl.terminal.errors import fail, one_line


def write_json(command: str, path: Path, text: str) -> None:
    """Write the text to the file, or to standard output when the path is `-`."""
    if str(path) == "-":
        print(text)
        return
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        fail(command, f"--json {one_line(error)}")
