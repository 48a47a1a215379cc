"""Tests the reader of JSON in which keys may be numbers or objects."""

import pytest

from mqproof.conformance.adapters.inspections.java_values import read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":[1,{"b":null}],"c":"}"}', {"a": [1, {"b": None}], "c": "}"}),
        ('{0:"x",1:"y"}', {0: "x", 1: "y"}),
        ('{"t":{{"q":1,"b":"n"}:{"o":2}, {"q":2,"b":"n"} : {}}}',
         {"t": {(("b", "n"), ("q", 1)): {"o": 2}, (("b", "n"), ("q", 2)): {}}}),
        ("[]", []),
        (b" {} ", {}),
    ],
)  # fmt: skip
def test_values_are_read(text: str | bytes, expected: object) -> None:
    assert read(text) == expected


@pytest.mark.parametrize("text", ["", "{", '{"a"}', '{"a":1 "b":2}', "[1 2]", "{} {}"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read(text)
