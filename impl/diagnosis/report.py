"""Shows answers: for people, and as JSON."""

import textwrap
from collections.abc import Sequence
from typing import Any, Final

from mqproof.impl.admin.tables import visible
from mqproof.impl.diagnosis.evidence import Answer

_INDENT: Final = " " * 12
_WIDTH_MIN: Final = 40


def lines(answers: Sequence[Answer], width: int | None = None) -> list[str]:
    """Return the text of the answers, broken into lines of this width if one is given."""
    found: list[str] = []
    for answer in answers:
        found += ["", *_lines(answer)] if found else _lines(answer)
    shown = [visible(line) for line in found]
    return shown if width is None else [part for line in shown for part in _broken(line, width)]


def _broken(line: str, width: int) -> list[str]:
    indented = line.startswith("  ")
    columns = max(width, _WIDTH_MIN)
    return textwrap.wrap(line, columns, subsequent_indent=_INDENT if indented else "") or [""]


def _lines(answer: Answer) -> list[str]:
    subject = f"message {answer.message_id}" if answer.message_id else f"topic {answer.topic}"
    if answer.group:
        subject += f", group {answer.group}"
    cause = answer.cause
    return [
        f"{subject}: {cause.state.value}",
        f"  cause     {cause.name}: {cause.meaning}",
        *(
            f"  {'evidence' if not number else '        '}  {line}"
            for number, line in enumerate(answer.evidence)
        ),
        f"  next      {cause.next_step}",
    ]


def as_json(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the answers as an object for JSON."""
    return {
        "answers": [
            {
                "message_id": answer.message_id,
                "topic": answer.topic,
                "group": answer.group,
                "state": answer.cause.state.value,
                "cause": answer.cause.name,
                "needs_action": answer.cause.needs_action,
                "evidence": list(answer.evidence),
                "next_step": answer.cause.next_step,
            }
            for answer in answers
        ],
        "exit_code": exit_code(answers),
    }


def exit_code(answers: Sequence[Answer]) -> int:
    """Return 1 if an answer needs action, else 3 if one is unknown or there is none, else 0."""
    codes = {answer.cause.exit_code for answer in answers}
    if 1 in codes:
        return 1
    return 3 if 3 in codes or not codes else 0
