"""Which messages a node records if it records a sample: those whose id has a small hash.

All nodes choose the same messages, because the hash depends on nothing but the id.
"""

import hashlib
from typing import Final

DIGITS: Final = 8


def sample_limit(rate: float) -> str:
    """Return the limit of a sample with this rate, above 0 and below 1.

    A message is in the sample if the first 8 hexadecimal digits of its id's MD5 are less, as a text.
    """
    if not 0 < rate < 1:
        raise ValueError(f"{rate:g}: expected a rate above 0 and below 1")
    return f"{round(rate * 16**DIGITS):0{DIGITS}x}"


def is_in_sample(msg_id: str, limit: str) -> bool:
    return hashlib.md5(msg_id.encode(), usedforsecurity=False).hexdigest()[:DIGITS] < limit
