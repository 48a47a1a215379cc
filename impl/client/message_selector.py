"""Which messages of a topic a consumer wants: by tag, or by an SQL92 expression over their properties.

See docs/reference/protocol/filters.md and docs/reference/protocol/pulling.md, "Pull requests".
"""

import re
from dataclasses import dataclass
from typing import Final

from mqproof.impl.filtering.sql import compiled
from mqproof.impl.filtering.tokens import ExpressionError

TAG: Final = "TAG"
SQL92: Final = "SQL92"

_NOT_IN_A_TAG: Final = re.compile(r"[=<>'\"()|]")
_OPERATORS: Final = frozenset(
    ["AND", "BETWEEN", "CONTAINS", "ENDSWITH", "IN", "IS", "NOT", "OR", "STARTSWITH"]
)


@dataclass(frozen=True, slots=True)
class MessageSelector:
    """The messages that a subscription selects. Use `MessageSelector.tag` and `MessageSelector.sql`."""

    expression: str
    expression_type: str = TAG

    @classmethod
    def tag(cls, expression: str) -> "MessageSelector":
        """Select messages with one of these tags: `TagA || TagB`, or `*` for all messages.

        Raises:
            ValueError: the text cannot be a tag expression.
        """
        if not isinstance(expression, str):
            raise TypeError(f"the tag expression is {expression!r}, a text expected")
        for tag in expression.split("||"):
            words = tag.split()
            if _NOT_IN_A_TAG.search(tag) or (len(words) > 1 and _OPERATORS & {*map(str.upper, words)}):
                raise ValueError(
                    f"{expression!r} is not a tag expression, such as 'TagA || TagB'; for conditions on "
                    "properties use MessageSelector.sql(...)"
                )
        return cls(expression)

    @classmethod
    def sql(cls, expression: str) -> "MessageSelector":
        """Select messages by a condition on their properties, such as `price > 10 AND region = 'eu'`.

        The broker must allow it: its `enablePropertyFilter` is off by default.

        Raises:
            ValueError: the text is not an expression; the message says where.
        """
        try:
            compiled(expression)
        except ExpressionError as error:
            raise ValueError(f"{expression!r} is no SQL92 expression: {error}") from None
        return cls(expression, SQL92)

    @property
    def is_sql(self) -> bool:
        return self.expression_type == SQL92


def as_selector(wanted: str | MessageSelector) -> MessageSelector:
    """Return the selector; a text is a tag expression. Raises ValueError."""
    return wanted if isinstance(wanted, MessageSelector) else MessageSelector.tag(wanted)
