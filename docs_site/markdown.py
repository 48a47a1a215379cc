"""Small pieces of Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def code(text: str) -> str:
    """Return text as inline code."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def escaped(text: str) -> str:
    """Return plain text so that Markdown shows it unchanged. Inline code between backticks stays code."""
    parts = text.split("`")
    for place in range(0, len(parts), 2):
        for sign in "\\*_<[":
            parts[place] = parts[place].replace(sign, f"\\{sign}")
    return "`".join(parts)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
