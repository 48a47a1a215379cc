"""Which messages of a topic a consumer wants: by tag, by an SQL92 expression, or by a function.

See docs/reference/protocol/filters.md and docs/reference/protocol/pulling.md, "Pull requests".
"""

import re
from dataclasses import dataclass, field
from typing import Final

from mqproof.impl.filtering.function_names import MAGIC, function_name
from mqproof.impl.filtering.sql import compiled
from mqproof.impl.filtering.tokens import ExpressionError

TAG: Final = "TAG"
SQL92: Final = "SQL92"
FUNCTION: Final = "FUNCTION"

_NOT_IN_A_TAG: Final = re.compile(r"[=<>'\"()|]")
_OPERATORS: Final = frozenset(
    ["AND", "BETWEEN", "CONTAINS", "ENDSWITH", "IN", "IS", "NOT", "OR", "STARTSWITH"]
)


@dataclass(frozen=True, slots=True)
class MessageSelector:
    """The messages that a subscription selects. Use `tag`, `sql` and `function`."""

    expression: str
    expression_type: str = TAG
    module: bytes | None = field(default=None, repr=False)
    """The module of WebAssembly, for `MessageSelector.function`."""

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

    @classmethod
    def function(cls, module: bytes) -> "MessageSelector":
        """Select messages by a function in WebAssembly, which a filter server of the broker runs.

        `module` is in the binary form. The consumer uploads it. The broker must have filter servers: its
        `filterServerEnable` is off by default.

        Raises:
            ValueError: the bytes are not a module.
        """
        if not isinstance(module, bytes):
            raise TypeError(f"the module is a {type(module).__name__}, bytes expected")
        if not module.startswith(MAGIC):
            raise ValueError("the bytes are not a module of WebAssembly in its binary form")
        return cls(function_name(module), FUNCTION, module)

    @property
    def is_sql(self) -> bool:
        return self.expression_type == SQL92


def as_selector(wanted: str | MessageSelector) -> MessageSelector:
    """Return the selector; a text is a tag expression. Raises ValueError."""
    return wanted if isinstance(wanted, MessageSelector) else MessageSelector.tag(wanted)
