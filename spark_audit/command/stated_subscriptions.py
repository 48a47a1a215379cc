"""The subscriptions that the user states, for logs without subscribe events: `GROUP:TOPIC=TAGS`."""

import re
from collections.abc import Iterable
from typing import Final

from mqproof.spark_audit.sources.inputs import InputError

_STATED: Final = re.compile(r"(\*|[%|\w-]{1,255}):(\*|[%|\w-]{1,255})=(.*)", re.ASCII)
_FORM: Final = "GROUP:TOPIC=TAGS, such as 'billing:orders=TagA || TagB' or '*:*=*'"
_CHARACTERS_MAX: Final = 4096


def parse_subscriptions(texts: Iterable[str]) -> tuple[tuple[str, str, str], ...]:
    """Return group, topic and tag expression of each text.

    Raises:
        InputError: a text has another form, or two texts disagree.
    """
    stated: dict[tuple[str, str], str] = {}
    for text in texts:
        found = _STATED.fullmatch(text)
        if found is None or len(text) > _CHARACTERS_MAX:
            raise InputError(f"--subscription: {text[:80]!r}, expected {_FORM}")
        group, topic, expression = found[1], found[2], _normal(found[3], text)
        if stated.setdefault((group, topic), expression) != expression:
            raise InputError(
                f"--subscription: {group}:{topic} is given twice, "
                f"as {stated[group, topic]!r} and {expression!r}"
            )
    return tuple((*of, expression) for of, expression in stated.items())


def _normal(expression: str, text: str) -> str:
    """Return the expression with its tags sorted."""
    tags = sorted({tag.strip() for tag in expression.split("||")})
    if tags != ["*"] and any(tag in ("", "*") or "|" in tag for tag in tags):
        raise InputError(
            f"--subscription: {text[:80]!r}: {expression[:80]!r} is no tag expression, expected {_FORM}; "
            "SQL92 expressions come from subscribe events only"
        )
    return " || ".join(tags)
