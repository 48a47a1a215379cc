"""Turns pages into HTML. Text of the cluster is escaped, and characters that are not visible are shown."""

from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mqproof.impl.admin.tables import visible
from mqproof.impl.console.page_parts import NAVIGATION, Page

_FOLDER: Final = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """Return the templates. Every value is escaped, in every template."""
    found = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["line"] = visible
    found.filters["lines"] = visible_lines
    return found


def render(page: Page, **context: Any) -> str:
    """Return the page as HTML. `context` is what every page shows: the account, notices, tokens."""
    template = environment().get_template("page.html")
    return template.render(page=page, navigation=NAVIGATION, **context)


def visible_lines(text: str) -> str:
    """Return text with line breaks and tabs as they are, and other invisible characters escaped."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))
