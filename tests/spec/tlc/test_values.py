"""Goal: TLC's text and Python values convert into each other. Method: examples as TLC prints them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.spec.tlc import values
from mqproof.spec.tlc.values import Function, ModelValue, ValueSyntaxError, parse, parse_state, show

N1, N2 = ModelValue("n1"), ModelValue("n2")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-3", -3),
        ("TRUE", True),
        ('"q\\"uo\\\\te"', 'q"uo\\te'),
        ('"a\\nb, <<"', "a\nb, <<"),
        ("n1", N1),
        ("{}", frozenset()),
        ("1..4", frozenset({1, 2, 3, 4})),
        ("-1..1", frozenset({-1, 0, 1})),
        ("4..1", frozenset()),
        ("{{}, {1}, {1, 2}}", frozenset({frozenset(), frozenset({1}), frozenset({1, 2})})),
        ("<<>>", ()),
        ("<< >>", ()),
        ('<< "a",\n   "b" >>', ("a", "b")),
        ("<<<<1, -3>>, <<2, -3>>>>", ((1, -3), (2, -3))),
        ("[k |-> 1, m |-> {n1}]", Function({"k": 1, "m": frozenset({N1})})),
        ("(n1 :> {1, 2} @@ n2 :> {})", Function({N1: frozenset({1, 2}), N2: frozenset()})),
        ("(2 :> TRUE @@\n  5 :> [a |-> <<1>>])", Function({2: True, 5: Function({"a": (1,)})})),
    ],
)
def test_each_form_of_value_that_tlc_prints_is_parsed(text: str, value: values.Value) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "<<1, 2", "{1,}", "[a |-> ]", "[1 |-> 2]", "1 2", "x = 1", "(1 :> 2", "1..n1", '"open', "[a :> 1]"],
)
def test_text_that_is_not_a_value_is_rejected(text: str) -> None:
    with pytest.raises(ValueSyntaxError, match="not a TLA"):
        parse(text)


def test_a_state_with_line_breaks_is_parsed() -> None:
    text = '/\\ log = << "a",\n   "b" >>\n/\\ x = 3\n/\\ f = (n1 :> 0 @@\n  n2 :> 1)\n\n'
    assert parse_state(text) == Function({"log": ("a", "b"), "x": 3, "f": Function({N1: 0, N2: 1})})


def test_a_state_of_one_variable_is_parsed_without_a_conjunction_sign() -> None:
    assert parse_state("x = 0\n") == Function({"x": 0})


def test_text_without_a_variable_is_rejected_as_a_state() -> None:
    with pytest.raises(ValueSyntaxError, match="no variable"):
        parse_state("Stuttering")


def test_functions_compare_and_hash_by_content() -> None:
    one, other = Function({"a": 1, "b": 2}), Function({"b": 2, "a": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one != Function({"a": 1})
    assert len({one, other}) == 1


def test_the_text_of_a_value_does_not_depend_on_the_order_of_its_elements() -> None:
    assert show(frozenset({10, 2, 1})) == "{1, 2, 10}"
    assert show({"b": [1, {2}], "a": True}) == "[a |-> TRUE, b |-> <<1, {2}>>]"
    assert show(Function({N2: 1, N1: 0})) == "(n1 :> 0 @@ n2 :> 1)"
    assert show({"not a name": 1}) == '("not a name" :> 1)'
    assert show({}) == "<<>>"


@pytest.mark.parametrize("value", [None, 1.5, b"bytes", [None]])
def test_a_value_that_tla_cannot_express_is_rejected(value: object) -> None:
    with pytest.raises(TypeError, match="is no TLA"):
        show(value)


def _functions(inner: st.SearchStrategy[values.Value]) -> st.SearchStrategy[values.Value]:
    # TLC prints a function over 1..n as a tuple, and an empty function as the empty tuple.
    keys = st.text(min_size=1, max_size=4) | st.integers(5, 9)
    return st.dictionaries(keys, inner, min_size=1, max_size=3).map(Function)


simple = st.integers(-9, 9) | st.text(max_size=5) | st.sampled_from([N1, N2])
trees = st.recursive(
    simple,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3) | _functions(inner)
    ),
    max_leaves=8,
)


@given(trees)
def test_the_text_of_a_value_is_parsed_back(value: values.Value) -> None:
    assert parse(show(value)) == value
