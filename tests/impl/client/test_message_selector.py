"""Tests which texts select messages, and what the error for another text says."""

import pytest

from mqproof.impl.client.message_selector import MessageSelector, as_selector


@pytest.mark.parametrize("text", ["*", "", "TagA || TagB", "a b", "in", "a || in || b", "a.b-c"])
def test_a_tag_expression_is_accepted(text: str) -> None:
    assert as_selector(text) == MessageSelector(text, "TAG")
    assert not as_selector(text).is_sql


@pytest.mark.parametrize(
    "text", ["a = 1", "price>10", "a IS NULL", "a in ('x')", "TagA | TagB", "a or b", "not a", "a || b in"]
)
def test_a_text_that_cannot_be_a_tag_expression_is_refused_with_one_line(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"is not a tag expression, such as .* use MessageSelector\.sql"
    ) as error:
        as_selector(text)
    assert "\n" not in str(error.value)


def test_an_expression_is_compiled_before_anything_is_sent() -> None:
    selector = MessageSelector.sql("price > 10")
    assert selector.is_sql
    assert as_selector(selector) is selector
    with pytest.raises(ValueError, match="'price >' is no SQL92 expression: the end at position 8"):
        MessageSelector.sql("price >")
    with pytest.raises(TypeError, match="the tag expression is None, a text expected"):
        MessageSelector.tag(None)  # type: ignore[arg-type]  # what is tested


def test_a_function_is_a_module_of_webassembly_and_its_bytes_are_not_shown() -> None:
    module = b"\0asm\1\0\0\0"
    selector = MessageSelector.function(module)
    assert (selector.expression_type, selector.module) == ("FUNCTION", module)
    assert not selector.is_sql
    assert "asm" not in repr(selector)
    assert selector != MessageSelector.function(module + b"\0")
    with pytest.raises(ValueError, match="not a module of WebAssembly in its binary form"):
        MessageSelector.function(b"(module)")
    with pytest.raises(TypeError, match="the module is a str, bytes expected"):
        MessageSelector.function("(module)")  # type: ignore[arg-type]  # what is tested
