"""Reads what TLC prints with `-tool`: numbered messages, which may be nested, and loose text between them.

The numbers are TLC's own message codes; they change less between versions than its sentences.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mqproof.spec.tlc.trace import Step, Trace
from mqproof.spec.tlc.values import parse_state

_MARK: Final = re.compile(r"@!@!@(?:STARTMSG (\d+):(\d+)|ENDMSG (\d+)) @!@!@\n?")
_FINAL_COUNT: Final = re.compile(r"(\d+) states generated, (\d+) distinct states found")
_DEPTH: Final = re.compile(r"depth of the complete state graph search is (\d+)")
_ACTION: Final = re.compile(r"<(\w+)[^>]*>: (\d+):(\d+)")
_STEP: Final = re.compile(r"(\d+): (.*)\n?")
_ACTION_NAME: Final = re.compile(r"<(\w+) line \d")

EVALUATION_PLACE: Final = 2103
GENERAL: Final = 1000
PROPERTY_FAILED: Final = (2102, 2111, 2113)
"""The initial state, an invariant, or an action property cannot be evaluated."""

INVARIANT: Final = (2107, 2110)
"""The codes of a violated invariant: in an initial state, and in a later state."""
ACTION_PROPERTY: Final = (2108, 2112)
_BY_INITIAL_STATE: Final = (2107, 2108)
TEMPORAL: Final = 2116
DEADLOCK: Final = 2114
SUCCESS: Final = 2193
ASSUMPTION: Final = (2104, 2105)
PARSE_FAILED: Final = 3002
OUT_OF_MEMORY: Final = (1001, 1002)
CONFIG_ERRORS: Final = (*range(2222, 2250), *range(5001, 5010))
USAGE: Final = 1102
_COUNTS: Final = 2199
_DEPTH_CODE: Final = 2194
_STATE, _STUTTERING, _BACK = 2217, 2218, 2122
_INIT_COVERAGE, _ACTION_COVERAGE = 2773, 2772
_ERROR_SEVERITY: Final = 1


@dataclass(frozen=True, slots=True)
class Message:
    code: int
    severity: int
    """0 information, 1 error, 2 TLC's bug, 3 warning, 4 a state."""
    text: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often an action fired: the new states it led to, and all states it led to."""

    distinct: int
    generated: int


@dataclass(frozen=True, slots=True)
class Output:
    """The messages in the order in which they begin, and the text outside of them."""

    messages: tuple[Message, ...]
    loose: str
    _by_code: dict[int, list[Message]] = field(default_factory=dict, repr=False, compare=False)

    def of(self, *codes: int) -> list[Message]:
        """Return the messages with one of these codes."""
        return [message for code in codes for message in self._by_code.get(code, ())]

    @property
    def errors(self) -> list[Message]:
        return [message for message in self.messages if message.severity == _ERROR_SEVERITY]

    @property
    def states(self) -> tuple[int, int]:
        """(distinct, generated); (0, 0) if TLC did not get that far."""
        found = [_FINAL_COUNT.search(message.text) for message in self.of(_COUNTS)]
        return (int(found[-1][2]), int(found[-1][1])) if found and found[-1] else (0, 0)

    @property
    def depth(self) -> int:
        """The number of states on the longest shortest path; 0 if TLC did not report it."""
        found = [_DEPTH.search(message.text) for message in self.of(_DEPTH_CODE)]
        return int(found[-1][1]) if found and found[-1] else 0

    @property
    def coverage(self) -> dict[str, Coverage]:
        """Maps each action name to how often it fired, in TLC's last report; empty without -coverage."""
        table: dict[str, Coverage] = {}
        for message in self.of(_INIT_COVERAGE, _ACTION_COVERAGE):
            if entry := _ACTION.match(message.text):
                table[entry[1]] = Coverage(int(entry[2]), int(entry[3]))
        return table

    @property
    def trace(self) -> Trace | None:
        """The counterexample, or None if there is none."""
        wanted = (_STATE, _STUTTERING, _BACK)
        found = _trace([message for message in self.messages if message.code in wanted])
        return found or self._initial_state()

    @property
    def traces(self) -> tuple[Trace, ...]:
        """A counterexample for each violated invariant of a run that kept going, in the order found."""
        parts: list[list[Message]] = []
        for message in self.messages:
            if message.code in INVARIANT:
                parts.append([])
            elif message.code == _STATE and parts:
                parts[-1].append(message)
        return tuple(trace for part in parts if (trace := _trace(part)) is not None)

    def _initial_state(self) -> Trace | None:
        """Return the state of a violation by an initial state.

        It comes without a trace, inside the message.
        """
        for message in self.of(*_BY_INITIAL_STATE):
            _, _, state = message.text.partition(":\n")
            if state.strip():
                return Trace((Step(1, "", parse_state(state)),))
        return None


def read(text: str) -> Output:
    """Parse TLC's output. Truncated output (TLC was killed) is read as far as it goes."""
    open_messages: list[tuple[int, int, int, list[str]]] = []
    done: list[tuple[int, Message]] = []
    loose: list[str] = []
    at = 0
    for mark in _MARK.finditer(text):
        (open_messages[-1][3] if open_messages else loose).append(text[at : mark.start()])
        at = mark.end()
        if mark[1] is not None:
            open_messages.append((mark.start(), int(mark[1]), int(mark[2]), []))
        elif open_messages:
            start, code, severity, parts = open_messages.pop()
            done.append((start, Message(code, severity, "".join(parts).strip("\n"))))
    loose.append(text[at:])
    messages = tuple(message for _, message in sorted(done, key=lambda entry: entry[0]))
    by_code: dict[int, list[Message]] = {}
    for message in messages:
        by_code.setdefault(message.code, []).append(message)
    return Output(messages, "".join(loose), by_code)


def _trace(messages: Sequence[Message]) -> Trace | None:
    steps: list[Step] = []
    for message in messages:
        head = _STEP.match(message.text)
        if head is None:
            continue
        number = int(head[1])
        if steps and message.code == _STATE and number == 1:
            break  # with -continue a second counterexample follows; the first is the shortest
        action = name[1] if (name := _ACTION_NAME.search(head[2])) else ""
        if message.code == _STUTTERING:
            return Trace(tuple(steps), stutters=True)
        if message.code == _BACK:
            return Trace(tuple(steps), back_to=number, back_by=action)
        steps.append(Step(number, action, parse_state(message.text[head.end() :])))
    return Trace(tuple(steps)) if steps else None
