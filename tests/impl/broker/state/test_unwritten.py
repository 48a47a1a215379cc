"""Changes stay unwritten until a write ends without an error; later ones are never forgotten."""

import asyncio

import pytest

from mqproof.impl.broker.state.unwritten import Unwritten


def test_a_write_leaves_only_the_changes_that_were_made_meanwhile() -> None:
    changes = Unwritten()
    changes.is_any = True
    with changes.writing():
        assert not changes.is_any
    assert not changes.is_any
    with changes.writing():
        changes.is_any = True
    assert changes.is_any


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("meanwhile", [True, False])
@pytest.mark.parametrize("error", [OSError, asyncio.CancelledError])
def test_a_write_that_fails_or_is_cancelled_forgets_no_change(
    before: bool, meanwhile: bool, error: type[BaseException]
) -> None:
    changes = Unwritten()
    changes.is_any = before

    def fail() -> None:
        with changes.writing():
            changes.is_any |= meanwhile
            raise error

    with pytest.raises(error):
        fail()
    assert changes.is_any is (before or meanwhile)


def test_nothing_is_unwritten_at_first() -> None:
    changes = Unwritten()
    with changes.writing():
        pass
    assert not changes.is_any
