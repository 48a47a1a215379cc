"""The part of a message's page that says what became of it for each group, as `mqproof diagnose` does."""

from typing import Final

from mqproof.impl.admin.admin import Admin
from mqproof.impl.client.model import ClientError
from mqproof.impl.console.page_parts import Cell, Table, columns, link
from mqproof.impl.console.visit import Visit
from mqproof.impl.diagnosis.causes import State
from mqproof.impl.diagnosis.cluster import SearchError
from mqproof.impl.diagnosis.evidence import Answer
from mqproof.impl.diagnosis.question import Question, answers
from mqproof.impl.remoting.message import StoredMessage

_TITLE: Final = "What happened to it?"
_GOOD: Final = frozenset({State.DELIVERED})
_WAITING: Final = frozenset({State.DELAYED, State.NOT_DUE, State.FILTERED, State.UNKNOWN})


async def diagnosis(visit: Visit, admin: Admin, stored: StoredMessage) -> Table:
    """Return a row for each group of the topic: the cause, the evidence, and the next step."""
    question = Question(message_id=stored.message_id, topic=stored.message.topic)
    titles = columns("Group", "Cause", "Meaning", "Next step", "Evidence")
    command = f"mqproof diagnose {stored.message_id} --topic {stored.message.topic}"
    try:
        found = await answers(question, admin, (), visit.console.runtime)
    except (ClientError, SearchError) as error:
        return Table(_TITLE, titles, [], f"There is no diagnosis: {error}", command)
    note = f"The same on the command line, which can also read event logs: {command}"
    return Table(_TITLE, titles, [_row(each) for each in found], "There is no diagnosis.", command, note)


def _row(answer: Answer) -> tuple[Cell | str, ...]:
    cause, group = answer.cause, answer.group
    return (
        "–" if group is None else Cell(group, href=link("/consumer", group=group)),
        Cell(cause.name, tone=_tone(cause.state, needs_action=cause.needs_action), is_whole=True),
        cause.meaning,
        cause.next_step,
        "; ".join(answer.evidence) or "–",
    )


def _tone(state: State, *, needs_action: bool) -> str:
    if state in _GOOD:
        return "good"
    return "warn" if state in _WAITING or not needs_action else "bad"
