"""SQL92 expressions: which messages each one selects, and which texts are no expressions.

See docs/reference/protocol/filters.md, "Grammar" and "Evaluation".
"""

from typing import Final

from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    make_group,
    make_topic,
    pull,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.wire import chapters

_VALUES: Final = {
    "0": None, "1": "1", "2": "2", "3": "x", "4": "TRUE", "5": "5.0", "6": " 7 ", "7": "-3",
    "8": "9223372036854775807", "9": "NaN", "A": "x'y", "B": "0x1p3d", "C": "5d",
}  # fmt: skip
"""The property `a` of each message, by its body. Message 2 also has `b` with the value 1."""
_ALL, _WITH = "".join(_VALUES), "".join(_VALUES)[1:]
_DEPTH_MAX, _TOKENS_MAX, _CHARACTERS_MAX = 64, 512, 4096
_UNPARSED: Final = 23


def _but(left_out: str, of: str = _WITH) -> str:
    return "".join(each for each in of if each not in left_out)


_SELECTED: Final = {
    # Numbers: a text that is no number of the type is an error, which selects nothing.
    "a = 1": "1", "a <> 1": "27", "a > 1": "2", "a >= 1": "12", "a < 1": "7", "a <= 1": "17", "1 = a": "1",
    "1 < a": "2", "1 <= a": "12", "1 > a": "7", "1 >= a": "17", "a = -3": "7", "a > - 4": "127",
    "+a = 1": "1",
    "- - 1 = a": "1", "-a = 3": "", "a = 9223372036854775807": "8", "a > 2147483647": "", "a >= 2L": "2",
    "a > 2147483648": "8", "a < 2147483648": "127", "a > -2147483649": "1278",
    "a > 1.5": "25689BC", "a >= 5.0": "5689BC", "a <= 5.0": "1257C", "a = 5.0": "5C", "a = .5e1": "5C",
    "a = 5.": "5C", "a = 5e0": "5C", "a = 7.0": "6", "a = 8.0": "B", "a > 1e300": "9", "a < -0.5": "7",
    "5.0 = a": "5C", "5.0 < a": "689B", "a <> 5.0": "126789B",
    "1 = 1": _ALL, "1 > 2": "", "1 < 2.5": _ALL, "2.5 < 2": "", "1 = 1.0": _ALL, "a > b": "2", "b < a": "2",
    # Texts and truth values.
    "a = 'x'": "3", "'x' = a": "3", "a <> 'x'": _but("3"), "'x' <> a": _but("3", _ALL), "a = 'x''y'": "A",
    "a = '1'": "1", "a = ''": "", "'x' = 'x'": _ALL, "'x' = 'y'": "", "a = TRUE": "4", "TRUE = a": "",
    "TRUE": _ALL, "FALSE": "", "NULL": "", "TRUE = TRUE": _ALL, "TRUE <> FALSE": _ALL, "NOT FALSE": _ALL,
    # Properties that are missing.
    "a IS NULL": "0", "a IS NOT NULL": _WITH, "A IS NULL": _ALL, "b IS NOT NULL": "2", "a = b": "0",
    "b = a": "0",
    "a <> b": _WITH, "b <> a": "2", "a": "", "NOT a": _WITH, "NULL IS NULL": _ALL, "1 IS NULL": "",
    # Several values.
    "a BETWEEN 1 AND 2": "12", "a NOT BETWEEN 1 AND 2": "7", "a BETWEEN 1 AND 1": "1",
    "1 BETWEEN a AND 2": "17",
    "a BETWEEN 1.5 AND 7.0": "256C", "a IN ('1', 'x')": "13", "a NOT IN ('1', 'x')": _but("13"),
    "a IN ('x')": "3", "b IN ('1')": "2", "b NOT IN ('1')": "",
    "a CONTAINS 'x'": "3AB", "a NOT CONTAINS 'x'": _but("3AB"), "a CONTAINS ''": "", "a NOT CONTAINS ''": "",
    "a STARTSWITH 'x'": "3A", "a NOT STARTSWITH 'x'": _but("3A"), "a ENDSWITH 'y'": "A",
    "a NOT ENDSWITH 'y'": _but("A"), "b NOT CONTAINS 'x'": "2", "'xyz' CONTAINS 'y'": _ALL,
    "1 CONTAINS '1'": "",
    # Operators and their order.
    "NOT (a = 1)": "27", "NOT a = 'x'": "", "NOT NOT (a = 1)": "1", "a = 1 AND b = 1": "",
    "a = 2 AND b = 1": "2",
    "b = 1 AND a = 2": "2", "a = 1 OR b = 1": "12", "b = 1 OR a = 1": "12", "a = 'x' OR a = 1": "13",
    "a = 1 OR a = 'x'": "1", "a IS NULL OR a = 1": "01", "a IS NOT NULL AND a = 1": "1",
    "a = 1 OR a = 2 AND b = 5": "1", "(a = 1 OR a = 2) AND b = 1": "2", "a = 2 AND b = 5 OR a = 1": "1",
    "FALSE AND a = 1": "", "TRUE OR a = 1": _ALL, "NOT (b = 1 AND a = 1)": "27", "NOT (a = 'x' OR b = 1)": "",
    "NOT (a <> 'x' AND b = 1)": "3", "NOT (b = 1 OR a = 'x')": "", "NOT (b = 1 AND a = 'x')": _but("3"),
    "NOT (a IS NULL AND b IS NULL)": _WITH, "(a = 1) = TRUE": "1", "(a = 1) <> FALSE": "1",
    "(a IS NULL) IS NULL": "",
    # Space, comments, and the case of keywords.
    "a = 1 -- = 2": "1", "a -- x\n = 1": "1", "a /* = 2 */ = 1": "1", "a/**/=/**/1": "1", " a\t=\r\n1 ": "1",
    "a is null or a In ('1')": "01", "a between 1 and 2": "12", "$a IS NULL and _b1 IS NULL": _ALL,
}  # fmt: skip
"""The bodies of the messages that each expression selects."""
_WRONG: Final = (
    "", " ", "a =", "= 1", "a = 1 b", "a = 1AND b = 1", "a = 1.5OR b = 1", "a like 'x'", "a != 1",
    "a == 1", "a + 1 = 2", "a * 2 = 2",
    "05 = a", "a = 5kg",
    "a = 1.5.1", "a = 1x", "a = NULL", "NULL = a", "a <> NULL", "a < 'x'", "'x' < a", "a < TRUE", "TRUE > a",
    "(a = 1) < 2", "TRUE = 5", "TRUE = 'x'", "FALSE <> 1", "1", "'x'", "-a", "a AND 1", "NOT 1", "NOT 'x'",
    "a BETWEEN 2 AND 1", "a BETWEEN 2.5 AND 1", "a BETWEEN 1", "a BETWEEN 1 OR 2", "a BETWEEN 'x' AND 'y'",
    "a IN (1)", "1 IN ('x')", "'x' IN ('x')", "a IN ()", "a IN 'x'", "a IN ('x'", "a IN ('x',)",
    "a CONTAINS 1",
    "a CONTAINS b", "a NOT 1", "a IS 1", "a IS TRUE", "a IS", "(a = 1", "a = 1)", "()", "a = 0.0",
    "a = 1e999",
    "a = 9223372036854775808", "a = -9223372036854775809", "a = 'x", 'a = "x"', "a ? 1", "a = 1;", "AND",
    "a OR",
    "1a = 1", "a = 1 /* x", "ä = 1",
)  # fmt: skip


async def sql_expressions(site: Site) -> None:
    site.rule = chapters.PULL_REQUESTS
    await make_topic(site, "t")
    await make_group(site, "g")
    for body, value in _VALUES.items():
        more = {"b": "1"} if body == "2" else {}
        await send(site, "t", body, of={**({} if value is None else {"a": value}), **more})
    for text, selected in _SELECTED.items():
        await _compare(site, text, selected)
    for text in _WRONG:
        await _compare(site, text, None)
    await _limits(site)
    await _largest(site)


async def _largest(site: Site) -> None:
    """Whole numbers have 32 bits next to one that has, and otherwise 64."""
    await make_topic(site, "numbers")
    values = [
        sign * (1 << bits) + more for bits in (31, 63) for sign, more in ((1, -1), (1, 0), (-1, 0), (-1, -1))
    ]
    for value in values:
        await send(site, "numbers", f"{value} ", of={"a": f"{value}"})
    for text, expected in (
        ("a <> 0", [values[0], values[2]]), ("a <> 2147483647", [values[2]]),
        ("a <> 2147483648", [values[0], *values[2:5], values[6]]), ("a <> 1.5", values),
    ):  # fmt: skip
        answer = await pull(site, "numbers", subscription=text, expressionType="SQL92")
        found = [int(each.body) for each in read_records(answer.body)]
        site.compare(f"the numbers that {text} selects", expected, found)


async def _compare(site: Site, text: str, selected: str | None) -> None:
    """Compare the bodies of the selected messages; None stands for a text that is no expression."""
    answer = await pull(site, "t", expects=None, subscription=text, expressionType="SQL92")
    found = "".join(each.body.decode() for each in read_records(answer.body)) if not answer.code else ""
    observed = None if answer.code == _UNPARSED else found
    site.compare(f"what {text[:60]!r} selects", selected, observed, answer.remark)
    if selected is None:
        wanted = subscription("t", text, 1, "SQL92")
        body = {"clientId": "c", "group": "g", "subscriptionData": wanted}
        await site.ask("CHECK_CLIENT_CONFIG", body, expects=_UNPARSED)


async def _limits(site: Site) -> None:
    """The depth, the number of operands and operators, and the length of an expression are limited."""
    for opening, closing in (("(", ")"), ("NOT (", ")"), ("- ", ""), ("+ ", "")):
        for depth in (_DEPTH_MAX, _DEPTH_MAX + 1):
            times = depth // 2 if opening == "NOT (" else depth
            more = "(" * (depth - 2 * times) if opening == "NOT (" else ""
            core = "1 = 1" if closing else "1"
            text = more + opening * times + core + closing * times + ")" * len(more)
            text += "" if closing else " = 1"
            await _compare(site, text, _ALL if depth == _DEPTH_MAX else None)
    most = " OR ".join(["1 = 1"] * (_TOKENS_MAX // 4 - 1))
    await _compare(site, f"{most} OR a IS NOT NULL", _ALL)
    await _compare(site, f"{most} OR NOT a IS NOT NULL", None)
    for longer, selected in ((0, "1"), (1, None)):
        await _compare(site, "a = 1" + " " * (_CHARACTERS_MAX - 5 + longer), selected)
        text = "a = '" + "y" * (_CHARACTERS_MAX - 6 + longer) + "'"
        await _compare(site, text, "" if selected else None)


SQL_EXPRESSIONS: Final = Inspection("SQL expressions", sql_expressions, {"property_filter": True})
