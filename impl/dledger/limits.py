"""The limits of the values that members exchange and store.

See docs/reference/protocol/dledger.md, "Limits". The decoders check each value against its limit, so no other
code meets a value beyond it.
"""

from typing import Annotated, Final

from msgspec import Meta

TERM_MAX: Final = 1 << 62
"""The highest term. A file holds twice as much, so the next term always fits."""
TERM_JUMP_MAX: Final = 1 << 24
"""How far a term may be ahead of the receiver's.

An election takes 300 ms or more, so a member that was away for eight weeks is closer than this to its group.
Without this limit, one message with the highest term would leave no term for the next election.
"""
INDEX_MAX: Final = 1 << 56
"""The highest index of an entry. Its unit in the index has a position that fits into a file offset."""
POSITION_MAX: Final = 1 << 62
ENTRY_BYTES_MAX: Final = (1 << 31) - 1
BATCH_MAX: Final = 10_000
"""The most entries of one push, and the most members of a group."""
NAME_CHARACTERS_MAX: Final = 255

_INT_MAX: Final = (1 << 31) - 1

Name = Annotated[str, Meta(max_length=NAME_CHARACTERS_MAX)]
"""The name of a group or member, or an address."""
Term = Annotated[int, Meta(ge=-1, le=TERM_MAX)]
EntryTerm = Annotated[int, Meta(ge=1, le=TERM_MAX)]
Index = Annotated[int, Meta(ge=-1, le=INDEX_MAX)]
EntryIndex = Annotated[int, Meta(ge=0, le=INDEX_MAX)]
Position = Annotated[int, Meta(ge=-1, le=POSITION_MAX)]
EntryPosition = Annotated[int, Meta(ge=0, le=POSITION_MAX)]
EntrySize = Annotated[int, Meta(ge=48, le=ENTRY_BYTES_MAX)]
Magic = Annotated[int, Meta(ge=1, le=2)]
Int = Annotated[int, Meta(ge=-(1 << 31), le=_INT_MAX)]
"""A signed number of four bytes."""
Count = Annotated[int, Meta(ge=0, le=_INT_MAX)]
Code = Annotated[int, Meta(ge=-1, le=_INT_MAX)]
"""A response code. Codes that we do not know have no effect."""
