"""The causes and their page."""

import re
from pathlib import Path

from mqproof.impl.diagnosis.causes import CAUSES, State

_PAGE = Path(__file__).parents[3] / "docs/how-to/diagnose.md"


def test_the_page_lists_every_cause_with_its_state_and_exit_code() -> None:
    listed = re.findall(r"^\| `(\w+)` \| ([a-z -]+) \| (.+) \| (\d) \|$", _PAGE.read_text(), re.M)
    assert listed == [
        (cause.name, cause.state.value, cause.meaning, str(cause.exit_code)) for cause in CAUSES.values()
    ]


def test_a_message_that_is_lost_or_skipped_needs_action_and_an_unknown_one_is_inconclusive() -> None:
    bad = {State.LOST, State.SKIPPED, State.NEVER_STORED, State.DEAD_LETTERED}
    assert {cause.exit_code for cause in CAUSES.values() if cause.state in bad} == {1}
    assert {cause.exit_code for cause in CAUSES.values() if cause.state is State.UNKNOWN} == {3}
    assert {cause.exit_code for cause in CAUSES.values() if cause.state is State.DELIVERED} == {0}
