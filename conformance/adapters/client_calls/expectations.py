"""Compares what a client does with what is expected of it, and keeps the differences."""

from collections.abc import Awaitable, Callable
from typing import Any

from mqproof.report.model import Witness

_SHOWN: int = 300
"""The most characters of a value in a report."""


class Expectations:
    """The differences found so far."""

    def __init__(self) -> None:
        self.wrong: list[Witness] = []
        self.compared = 0
        """The number of comparisons."""

    def equal(self, what: str, expected: object, observed: object) -> None:
        """Compare a value. Of two tables, name only the members that differ."""
        self.compared += 1
        if expected == observed:
            return
        if isinstance(expected, dict) and isinstance(observed, dict):
            names = [
                name
                for name in {**expected, **observed}
                if expected.get(name, _ABSENT) != observed.get(name, _ABSENT)
            ]
            expected = {name: expected[name] for name in names if name in expected}
            observed = {name: observed[name] for name in names if name in observed}
        self._found(f"{what} is {_shown(observed)}, expected {_shown(expected)}")

    def refused(self, what: str, kind: type[Exception], call: Callable[[], object]) -> None:
        """Expect that the call raises an error of exactly this type."""
        self.compared += 1
        try:
            result = call()
        except Exception as error:  # compared with the expected one
            self._judge(what, kind, error)
        else:
            self._found(f"{what} returns {_shown(result)}, {kind.__name__} expected")

    async def fails(self, what: str, kind: type[Exception], work: Awaitable[object]) -> Exception | None:
        """Expect that the work raises an error of exactly this type, and return the error."""
        self.compared += 1
        try:
            result = await work
        except Exception as error:  # compared with the expected one
            self._judge(what, kind, error)
            return error
        self._found(f"{what} returns {_shown(result)}, {kind.__name__} expected")
        return None

    def accepted(self, what: str, call: Callable[[], Any]) -> Any:
        """Expect that the call raises nothing, and return its result."""
        self.compared += 1
        try:
            return call()
        except Exception as error:  # each one is a difference
            self._found(f"{what} raises {_shown(error)}")
            return None

    def failed(self, what: str, error: Exception) -> None:
        """Keep an error that ended a part of the calls."""
        self._found(f"{what} ends with {_shown(error)}")

    def _judge(self, what: str, kind: type[Exception], error: Exception) -> None:
        if type(error) is not kind:
            self._found(f"{what} raises {_shown(error)}, {kind.__name__} expected")

    def _found(self, text: str) -> None:
        self.wrong.append(Witness(text))


_ABSENT = object()


def _shown(value: object) -> str:
    text = f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
