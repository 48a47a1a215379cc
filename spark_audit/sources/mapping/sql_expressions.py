"""Evaluates SQL92 subscriptions over the properties of messages, by the grammar that brokers have.

See docs/reference/protocol/filters.md. The properties are the text of an event's `attrs.properties`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from mqproof.impl.filtering.sql import Filter, compiled
from mqproof.impl.filtering.tokens import ExpressionError

INVALID: Final = "?"
"""Marks, before its text, an expression that cannot be evaluated."""

_decoder: Final = msgspec.json.Decoder(dict[str, str])


def selecting(
    expressions: Iterable[str], properties: str, tags: str | None, keys: str | None
) -> list[str] | None:
    """Return the expressions that select a message, and those that cannot be evaluated, with a mark.

    Returns None if the text is not a JSON object of texts.
    """
    try:
        given: Mapping[str, str] = _decoder.decode(properties)
    except msgspec.MsgspecError:
        return None
    values = {**({"TAGS": tags} if tags else {}), **({"KEYS": keys} if keys else {}), **given}
    found = []
    for text in expressions:
        filter_ = _compiled(text)
        if filter_ is None:
            found.append(INVALID + text)
        elif filter_.matches(values):
            found.append(text)
    return found


def _compiled(text: str) -> Filter | None:
    try:
        return compiled(text)
    except ExpressionError:
        return None
