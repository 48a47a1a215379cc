"""The fast copy of a state does what dataclasses.replace does."""

import dataclasses

import pytest

from mqproof.reference import flush
from mqproof.reference.updates import replace


def test_a_copy_differs_in_the_named_fields_alone() -> None:
    (before,) = flush.initial(flush.Config(flush_modes=(flush.SYNC_FLUSH,)))
    after = replace(before, flushed=7, phase="down")
    assert after == dataclasses.replace(before, flushed=7, phase="down")
    assert hash(after) == hash(dataclasses.replace(before, flushed=7, phase="down"))
    assert before.flushed == 0


def test_a_field_that_is_not_there_is_refused() -> None:
    (before,) = flush.initial(flush.Config(flush_modes=(flush.SYNC_FLUSH,)))
    with pytest.raises(TypeError, match="flusht"):
        replace(before, flusht=7)
