"""SQL92 subscriptions are evaluated by the text of an event's properties."""

from mqproof.spark_audit.sources.mapping.sql_expressions import selecting


def test_the_expressions_that_select_a_message_are_returned() -> None:
    texts = ["price > 5", "price < 5", "TAGS = 'tea'", "KEYS = 'k'", "a IS NULL", "price >"]
    assert selecting(texts, '{"price":"7"}', "tea", "") == [
        "price > 5",
        "TAGS = 'tea'",
        "a IS NULL",
        "?price >",
    ]
    assert selecting(["TAGS IS NULL"], "{}", "", None) == ["TAGS IS NULL"]


def test_a_text_that_is_no_object_of_texts_is_unknown() -> None:
    for text in ("", "[]", '{"price":7}', "price=7"):
        assert selecting(["price > 5"], text, None, None) is None
