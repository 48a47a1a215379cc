"""Tests that bodies of messages become texts."""

import zlib

from mqproof.impl.remoting.message import SYS_COMPRESSED
from mqproof.spark_audit.sources.trace.bodies import text_of


def test_a_body_is_text_compressed_or_not() -> None:
    assert text_of("tea ✓".encode(), 0) == "tea ✓"
    assert text_of(zlib.compress(b"tea"), SYS_COMPRESSED) == "tea"


def test_a_body_that_is_not_text_has_none() -> None:
    assert text_of(b"\xff\xfe", 0) is None
