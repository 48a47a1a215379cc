"""The dimensions of the suite of our push consumers.

`conformance/adapters/brokers/push_members.py` meets some rows of them after the drawn changes of a group.
"""

from typing import Final

from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Infeasible, Value
from mqproof.conformance.suites.delivery.steps import Change
from mqproof.conformance.suites.delivery.target import QUEUES

SIZE: Final = "members"
CHANGE: Final = "change"
MESSAGES: Final = "messages"
RESET: Final = "reset of the offsets"

SIZES: Final = {"fewer than queues": QUEUES - 1, "as many as queues": QUEUES, "more than queues": QUEUES + 1}
SENDS: Final = {"none": (), "one": (0,), "more than one in each queue": (*range(QUEUES), *range(QUEUES))}
PAUSED: Final = "joins while another one is paused"
_CHANGED: Final = r"c\d (?:joins|leaves|dies|falls silent)[^\n]*\n"

DIMENSIONS: Final = Dimensions(
    (
        Dimension(SIZE, tuple(Value(name, f"^{count} members$") for name, count in SIZES.items())),
        Dimension(
            CHANGE,
            (
                Value(Change.JOINS, f"^c. {Change.JOINS};", hides="^one is paused$"),
                Value(PAUSED, "^one is paused$"),
                *(Value(each, f"^c. {each};") for each in (Change.LEAVES, Change.DIES, Change.SILENT)),
            ),
        ),
        Dimension(
            MESSAGES,
            (
                Value("none", hides="^send to"),
                Value("one", "^send to", hides="(?s)^send to.*^send to"),
                Value("more than one in each queue", f"(?s)(?:^send to.*?){{{2 * QUEUES}}}"),
            ),
        ),
        Dimension(
            RESET,
            (
                Value("none", hides="are reset to"),
                Value("before the change", rf"are reset to[^\n]*\n(?:.*\n)*?{_CHANGED}"),
                Value("after the change", rf"{_CHANGED}(?:.*\n)*?.*are reset to"),
            ),
        ),
    ),
    (
        *(
            Infeasible((SIZE, "more than queues"), (CHANGE, change), "there is no other member")
            for change in (Change.JOINS, PAUSED)
        ),
        *(
            Infeasible((CHANGE, PAUSED), (MESSAGES, messages), "the new member must read something")
            for messages in ("none", "one")
        ),
    ),
)
