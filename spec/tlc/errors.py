"""The reasons why TLC gave no verdict, each as one sentence for a reader."""

import re
from enum import StrEnum
from typing import Final

from mqproof.report.model import Exit
from mqproof.spec.tlc import output
from mqproof.spec.tlc.output import Output


class Reason(StrEnum):
    """The reason why TLC gave no verdict."""

    TOOL_MISSING = "tool missing"
    PARSE = "parse error"
    CONFIG = "configuration error"
    ASSUMPTION = "assumption false"
    EVALUATION = "evaluation error"
    MEMORY = "out of memory"
    TIMEOUT = "time-out"
    CRASH = "crash"


BAD_INPUT: Final = (Reason.PARSE, Reason.CONFIG, Reason.ASSUMPTION, Reason.EVALUATION)
"""Reasons in the module or its configuration, as opposed to the tool or the machine."""

UNDECIDED: Final = (Reason.MEMORY, Reason.TIMEOUT)
"""Reasons for which more time or memory might give a verdict."""


class TlcError(RuntimeError):
    """TLC gave no verdict. `reason` is the cause; the message is one line; `text` is all that TLC printed."""

    def __init__(self, reason: Reason, message: str, text: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.text = text

    @property
    def exit_code(self) -> int:
        """The exit code of a command that ends because of this error."""
        if self.reason in BAD_INPUT:
            return Exit.USAGE
        return Exit.INCONCLUSIVE if self.reason in UNDECIDED else Exit.TOOL


_EXIT_ON_OUT_OF_MEMORY: Final = 3
_EXIT_ON_PARSE_FAILURE: Final = 150
_PLACE: Final = re.compile(r"line (\d+), col(?:umn)? (\d+)", re.IGNORECASE)
_NESTED_PLACE: Final = re.compile(r"^\d+\. Line (\d+), column (\d+) .* in (\w+)", re.MULTILINE)
_UNDEFINED: Final = re.compile(r"line (\d+), col (\d+) to [^\n]* of module (\w+)\s+(.+?)\n\s*\n", re.DOTALL)
_SYNTAX: Final = re.compile(r"(Was expecting .*?)\n(?:\s*\n|Residual)", re.DOTALL)
_SYNTAX_MODULE: Final = re.compile(r"Could not parse module (\w+)")


def diagnose(read: Output, exit_code: int, text: str) -> TlcError:
    """Return the error for an exit of TLC without a verdict."""
    reason, message = _diagnose(read, exit_code)
    return TlcError(reason, f"TLC: {reason}: {message}", text)


def _diagnose(read: Output, exit_code: int) -> tuple[Reason, str]:
    errors = read.errors
    text = "\n".join(message.text for message in errors)
    if (
        read.of(*output.OUT_OF_MEMORY)
        or "OutOfMemoryError" in text + read.loose
        or (exit_code == _EXIT_ON_OUT_OF_MEMORY and "OutOfMemory" in read.loose)
    ):
        return Reason.MEMORY, "the heap is too small for this model; give it more or bound the model"
    if read.of(output.PARSE_FAILED) or exit_code == _EXIT_ON_PARSE_FAILURE:
        return Reason.PARSE, _parse_failure(read.loose + text)
    if found := read.of(*output.ASSUMPTION):
        return Reason.ASSUMPTION, _one_line(found[0].text)
    if found := read.of(*output.CONFIG_ERRORS):
        return Reason.CONFIG, _one_line(found[0].text)
    if "StackOverflowError" in text:
        return Reason.EVALUATION, f"endless or very deep recursion{_evaluation_place(read)}"
    if read.of(output.EVALUATION_PLACE, output.GENERAL, *output.PROPERTY_FAILED):
        return Reason.EVALUATION, f"{_evaluation_message(read)}{_evaluation_place(read)}"
    if read.of(output.USAGE):
        return Reason.CRASH, _one_line(read.of(output.USAGE)[0].text.partition("Usage:")[0])
    last = [line for line in read.loose.splitlines() if line.strip()]
    detail = _one_line(text or (last[0] if last else "no output"))
    return Reason.CRASH, f"it ended with exit code {exit_code}: {detail}"


def _parse_failure(loose: str) -> str:
    if found := _UNDEFINED.search(loose + "\n\n"):
        return f"{found[3]}.tla:{found[1]}:{found[2]}: {_one_line(found[4])}"
    if found := _SYNTAX.search(loose):
        module = name[1] + ".tla" if (name := _SYNTAX_MODULE.search(loose)) else "module"
        place = f":{where[1]}:{where[2]}" if (where := _PLACE.search(found[1])) else ""
        return f"{module}{place}: {_one_line(found[1])}"
    if found := re.search(r"Cannot find source file for module .*", loose):
        return _one_line(found[0])
    lines = [line for line in loose.splitlines() if line.strip()]
    interesting = [line for line in lines if not line.startswith(("Parsing file", "Semantic processing"))]
    return _one_line(" ".join(interesting[:4]) or "the parser printed nothing")


def _evaluation_message(read: Output) -> str:
    """Return the specific message. TLC wraps it in a general one; the innermost describes the failure."""
    general = {output.GENERAL, output.EVALUATION_PLACE, *output.PROPERTY_FAILED}
    start = next(i for i, message in enumerate(read.messages) if message.code in general)
    for message in read.messages[start + 1 :]:
        if message.severity == 0 and message.code not in general:
            return _one_line(message.text)
        break
    lines = read.messages[start].text.splitlines()
    return _one_line(
        " ".join(line for line in lines if not line.startswith(("TLC threw", "This was", "See")))
    )


def _evaluation_place(read: Output) -> str:
    places = [place for m in read.of(output.EVALUATION_PLACE) for place in _NESTED_PLACE.findall(m.text)]
    return f" at {places[-1][2]}.tla:{places[-1][0]}:{places[-1][1]}" if places else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())[:400]
