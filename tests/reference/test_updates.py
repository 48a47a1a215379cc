"""The fast copy of a state has the result of dataclasses.replace."""

import dataclasses

import pytest

from mqproof.reference import flush
from mqproof.reference.updates import replace


def test_a_copy_differs_only_in_the_given_fields() -> None:
    (before,) = flush.initial(flush.Config(flush_modes=(flush.SYNC_FLUSH,)))
    after = replace(before, flushed=7, phase="down")
    assert after == dataclasses.replace(before, flushed=7, phase="down")
    assert hash(after) == hash(dataclasses.replace(before, flushed=7, phase="down"))
    assert before.flushed == 0


def test_an_unknown_field_is_rejected() -> None:
    (before,) = flush.initial(flush.Config(flush_modes=(flush.SYNC_FLUSH,)))
    with pytest.raises(TypeError, match="flusht"):
        replace(before, flusht=7)
