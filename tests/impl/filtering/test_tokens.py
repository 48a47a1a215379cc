"""Tests how an SQL92 expression is split into tokens."""

import pytest

from mqproof.impl.filtering.tokens import CHARACTERS_MAX, TOKENS_MAX, ExpressionError, Kind, tokens


def test_every_kind_of_token_is_found_between_spaces_and_comments() -> None:
    text = "Aa$ <= 5L -- up to here\n /* and */ 'it''s'  .5 not(1.5e3)"
    found = [(token.kind, token.text) for token in tokens(text)]
    assert found == [
        (Kind.NAME, "Aa$"),
        (Kind.SYMBOL, "<="),
        (Kind.WHOLE, "5L"),
        (Kind.STRING, "it's"),
        (Kind.DECIMAL, ".5"),
        (Kind.KEYWORD, "NOT"),
        (Kind.SYMBOL, "("),
        (Kind.DECIMAL, "1.5e3"),
        (Kind.SYMBOL, ")"),
        (Kind.END, ""),
    ]
    assert [token.at for token in tokens("a  = 1")] == [1, 4, 6, 7]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a ! b", "'! b' at position 3 is not part"),
        ("a = 'open", "at position 5 is not part"),
        ("a = 05", "'05' at position 5 is not a number"),
        ("a = 5kg", "'5k' at position 5 is not a number"),
        ("é = 1", "at position 1"),
        ("a" * (CHARACTERS_MAX + 1), "4097 characters, at most 4096"),
        ("+" * (TOKENS_MAX + 1), "more than 512 operands"),
    ],
)
def test_a_text_that_is_not_made_of_tokens_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError, match=problem):
        tokens(text)
