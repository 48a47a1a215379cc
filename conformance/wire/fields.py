"""Tables of header fields as text: one field per line, `name TYPE value`.

TYPE is S, I, L or B, with `!` for a mandatory field and `?` for an optional one, and `5` after it for fields
added in 5.x. The value is that of the valid request, which omits fields without a value.
"""

import re
from typing import Final

from mqproof.conformance.wire.model import Field, Kind, Since

_LINE: Final = re.compile(r"(\w+) +([SILB])([!?])(5?)(?: +(.*))?")


def fields(table: str) -> tuple[Field, ...]:
    """Return the fields in the order of their lines, which numbers their cases: add new fields at the end.

    Raises:
        ValueError: a line has another form, or a mandatory field has no value.
    """
    return tuple(_field(line.strip()) for line in table.splitlines() if line.strip())


def _field(line: str) -> Field:
    if (match := _LINE.fullmatch(line)) is None:
        raise ValueError(f"{line!r} is not a field, expected `name TYPE value`")
    name, kind, need, five, value = match.groups()
    if need == "!" and value is None:
        raise ValueError(f"{line!r}: a mandatory field without a value")
    return Field(name, Kind(kind), need == "!", value, Since.V5 if five else Since.V4_9)
