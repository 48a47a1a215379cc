"""The small model tests/spec/tla/Counter.tla, which the tests of the runner share."""

from pathlib import Path
from typing import Final

TLA: Final = Path(__file__).parent.parent / "tla"
LIBRARIES: Final = (TLA,)
CONFIG: Final = (TLA / "Counter.cfg").read_text(encoding="utf-8")
ACTIONS: Final[dict[str, list[tuple[str, ...]]]] = {
    "Take": [("n1",), ("n2",)],
    "Add": [(node, by) for node in ("n1", "n2") for by in ("1", "2")],
    "Drop": [()],
}
DISTINCT: Final = 57
"""The number of states, computed by hand and by TLC in test_tlc_finds_the_computed_number_of_states."""
