"""The dead letters of a group, and sending them to the group again."""

from contextlib import suppress
from typing import Final

from mqproof.impl.admin import groups, messages
from mqproof.impl.client.model import NoRouteError, Sent
from mqproof.impl.console.form_values import FormError
from mqproof.impl.console.message_window import SKIP_MAX, MessageWindow, read_window
from mqproof.impl.console.page_parts import (
    Button,
    Cell,
    Field,
    Form,
    Links,
    Page,
    Part,
    Redirect,
    Table,
    columns,
    counted,
    link,
)
from mqproof.impl.console.pages.message_pages import local_time, message_row, outcome_notice
from mqproof.impl.console.visit import Visit
from mqproof.impl.remoting.message import RETRY_TOPIC, StoredMessage

COUNT_MAX: Final = 50
"""The most dead letters on one page, and in one request to send them again."""


async def dead_letters(visit: Visit) -> Page:
    """Return the dead letters of a group from a time on, oldest first."""
    group = visit.values.name("group")
    window = MessageWindow.of(visit.values, 0, messages.TIME_MAX)
    shown: list[StoredMessage] = []
    following = None
    with suppress(NoRouteError):  # the topic begins with the first dead letter
        async with visit.admin() as admin:
            shown, following = await read_window(admin, _topic(group), window, COUNT_MAX)
    titles = ["Message", "Stored", "Topic", "Keys", "Body", *(["Send again"] if visit.allows_changes else [])]
    table = Table(
        counted(len(shown), "dead letter"),
        columns(*titles),
        [_row(visit, group, stored) for stored in shown],
        "This group has no dead letter: every message was consumed, or is still retried.",
        note="Messages that failed at every delivery. They stay here until the broker deletes old files.",
    )
    parts: list[Part] = [table]
    if following is not None:
        begin = local_time(following.begin_ms)
        later = link("/dead-letters", group=group, begin=begin, skip=following.skip)
        parts.append(Links("More dead letters", [("Later dead letters", later)]))
    if visit.allows_changes and shown:
        parts.append(_all_form(group, window, len(shown)))
    back = (link("/consumer", group=group), f"Group {group}")
    return Page(f"Dead letters of {group}", "/consumers", parts, back=back)


async def resend(visit: Visit) -> Redirect:
    """Send one dead letter to its group again."""
    group = visit.values.name("group")
    async with visit.admin() as admin:
        stored = await messages.by_offset_id(admin, visit.values.required("id", most=64))
        _require_dead(stored, group)
        outcome = await messages.resend_dead_letter(admin, group, stored)
    return outcome_notice(outcome, link("/dead-letters", group=group))


async def resend_all(visit: Visit) -> Redirect:
    """Send the dead letters of one page to their group again, and stop at the first failure."""
    values = visit.values
    group, count = values.name("group"), values.number("count", 1, 1, COUNT_MAX)
    begin_ms, skip = values.number("begin_ms", 0, 0, messages.TIME_MAX), values.number("skip", 0, 0, SKIP_MAX)
    to = link("/dead-letters", group=group)
    async with visit.admin() as admin:
        window = MessageWindow(begin_ms, messages.TIME_MAX, skip)
        found, _ = await read_window(admin, _topic(group), window, count)
        for sent, stored in enumerate(found):
            outcome = await messages.resend_dead_letter(admin, group, stored)
            if not isinstance(outcome, Sent):
                text = f"{sent} are sent again, then {stored.message_id} failed: {outcome.remark}"
                return Redirect(to, "bad", text)
    return Redirect(to, "good", f"{counted(len(found), 'dead letter')} sent again; the group receives them.")


def _topic(group: str) -> str:
    return groups.DEAD_LETTER_PREFIX + group


def _row(visit: Visit, group: str, stored: StoredMessage) -> tuple[Cell | str, ...]:
    id_, stored_at, _, keys, _, _, body = message_row(stored)
    row = (id_, stored_at, stored.message.properties.get(RETRY_TOPIC, "–"), keys, body)
    if not visit.allows_changes:
        return row
    values = {"group": group, "id": stored.offset_message_id}
    button = Button("Send again", "/dead-letters/resend", values, f"Send {stored.message_id} again")
    return (*row, Cell("", button=button))


def _all_form(group: str, window: MessageWindow, count: int) -> Form:
    values = {"group": group, "begin_ms": window.begin_ms, "skip": window.skip, "count": count}
    fields = [Field(name, "", str(value), "hidden") for name, value in values.items()]
    note = "Only this group receives the copies, with the same message ids. Mend its listener first."
    title = f"Send all {count} again"
    return Form(title, "/dead-letters/resend-all", fields, "Send all again", note=note, is_folded=True)


def _require_dead(stored: StoredMessage, group: str) -> None:
    if stored.message.topic != _topic(group):
        raise FormError(f"id is {stored.offset_message_id}, a dead letter of group {group} expected")
