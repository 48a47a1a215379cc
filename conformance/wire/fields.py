"""Tables of header fields as text: a field a line, `name TYPE value`.

TYPE is S, I, L or B with `!` for a mandatory field and `?` for an optional one, and `5` behind it when 5.x
brought it. The value is that of the valid request; without one the field is left out there.
"""

import re
from typing import Final

from mqproof.conformance.wire.model import Field, Kind, Since

_LINE: Final = re.compile(r"(\w+) +([SILB])([!?])(5?)(?: +(.*))?")


def fields(table: str) -> tuple[Field, ...]:
    """The fields in the order of their lines, which numbers their cases: new ones go to the end.

    Raises:
        ValueError: a line is not of this form, or a mandatory field has no value.
    """
    return tuple(_field(line.strip()) for line in table.splitlines() if line.strip())


def _field(line: str) -> Field:
    if (match := _LINE.fullmatch(line)) is None:
        raise ValueError(f"{line!r} is no field, expected `name TYPE value`")
    name, kind, need, five, value = match.groups()
    if need == "!" and value is None:
        raise ValueError(f"{line!r}: a mandatory field without a value")
    return Field(name, Kind(kind), need == "!", value, Since.V5 if five else Since.V4_9)
