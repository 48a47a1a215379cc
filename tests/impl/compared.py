"""Compares values, with the text of what they are."""


class Compared:
    """Has the calls of an inspection's site that compare values; a difference fails the test."""

    def compare(self, what: str, expected: object, observed: object, remark: str | None = None) -> None:
        assert expected == observed, f"{what} ({remark})" if remark else what

    def report(self, text: str) -> None:
        raise AssertionError(text)
