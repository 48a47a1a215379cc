"""Values of targets become JSON and come back; other JSON is refused with its place."""

from collections.abc import Sequence, Set
from typing import Any

import pytest

from mqproof.conformance.adapters.stdio.wire_values import ValueMismatchError, from_json, to_json
from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.conformance.suites.flush import target as flush
from mqproof.conformance.suites.offsets import target as offsets

MESSAGE = flush.PulledMessage("m", b"\x00\xff", "T", 1, 7, 9)
FAULTS = frozenset[offsets.Capability | BrokerFault]


@pytest.mark.parametrize(
    ("value", "hint", "encoded"),
    [
        (None, int | None, None),
        (7, int | None, 7),
        (True, bool, True),
        (1.5, float, 1.5),
        ("x", str, "x"),
        (b"\x00\xff", bytes, "AP8="),
        (offsets.Message("m", "t", 3), offsets.Message, {"msg_id": "m", "tag": "t", "offset": 3}),
        (((1, 2), (3, 4)), tuple[tuple[int, int], ...], [[1, 2], [3, 4]]),
        (frozenset({"b", "a"}), frozenset[str], ["a", "b"]),
        (frozenset({"b", "a"}), Set[str], ["a", "b"]),
        ({"x": frozenset({1})}, dict[str, frozenset[int]], {"x": [1]}),
        (frozenset({offsets.Capability.SQL92, BrokerFault.KILL}), FAULTS, ["kill", "sql92"]),
        (flush.Pulled(flush.PullStatus.FOUND, (MESSAGE,), 8, 0, 8), flush.Pulled,
         {"status": "FOUND", "messages": [{"msg_id": "m", "body": "AP8=", "topic": "T", "queue_id": 1,
          "queue_offset": 7, "stored_ms": 9}], "next_offset": 8, "min_offset": 0, "max_offset": 8}),
    ],
)  # fmt: skip
def test_a_value_survives_the_wire(value: Any, hint: Any, encoded: Any) -> None:
    assert to_json(value) == encoded
    assert from_json(encoded, hint) == value


def test_fields_with_a_default_may_be_missing() -> None:
    assert from_json({"outcome": "failed"}, flush.Sent) == flush.Sent(flush.Outcome.FAILED)


@pytest.mark.parametrize(
    ("encoded", "hint", "message"),
    [
        ("7", int, "result is '7', an integer of 64 bits expected"),
        (True, int, "an integer of 64 bits"),
        (1 << 63, int, "an integer of 64 bits"),
        (1, bool, "true or false"),
        ("1", float, "a number"),
        (7, str, "a string"),
        ("?", bytes, "base64"),
        (0, None, "null"),
        ("x", int | None, "null"),
        ({}, Sequence[int] | None, "null"),
        ([1], tuple[int, int], "an array of 2"),
        ([1, "x"], tuple[int, ...], r"result\[1\] is 'x'"),
        ("a", frozenset[str], "an array"),
        (["fly"], FAULTS, "one of kill"),
        ({"msg_id": "m", "tag": ""}, offsets.Message, "result lacks offset"),
        ({"outcome": "ok", "x": 1}, flush.Sent, "has the field 'x', expected outcome"),
        ({"outcome": "fine"}, flush.Sent, "result.outcome is 'fine', one of ok, failed"),
        ({}, flush.Sent, "lacks outcome$"),
        ([], flush.Sent, "an object"),
        ([], dict[str, int], "an object"),
    ],
)
def test_other_values_are_refused_with_their_place(encoded: Any, hint: Any, message: str) -> None:
    if hint == Sequence[int] | None:
        hint = dict[str, int] | None
        encoded = []
    with pytest.raises(ValueMismatchError, match=message):
        from_json(encoded, hint)
