"""The dead letters of a group, and sending them to the group again."""

from typing import Final

from mqproof.impl.admin import groups, messages
from mqproof.impl.client.model import NoRouteError, Sent
from mqproof.impl.console.form_values import FormError
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
    since_ms = visit.values.time_ms("since") or 0
    found = await _read(visit, group, since_ms)
    shown = found[:COUNT_MAX]
    rows = [_row(visit, group, stored) for stored in shown]
    titles = ["Message", "Stored", "Topic", "Keys", "Body"]
    parts: list[Part] = [
        Table(
            f"{len(shown)} dead letters",
            columns(*titles, *(["Send again"] if visit.allows_changes else [])),
            rows,
            "This group has no dead letter: every message was consumed, or is still retried.",
            note="Messages that failed at every delivery. They stay here until the broker deletes old files.",
        )
    ]
    if len(found) > COUNT_MAX:
        parts.append(
            Links(
                "More dead letters",
                [
                    (
                        "Later dead letters",
                        link("/dead-letters", group=group, since=local_time(found[-1].store_timestamp_ms)),
                    )
                ],
            )
        )
    if visit.allows_changes and shown:
        parts.append(_all_form(group, shown))
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
    group = visit.values.name("group")
    first = visit.values.number("first_ms", 0, 0, messages.TIME_MAX)
    last = visit.values.number("last_ms", 0, 0, messages.TIME_MAX)
    sent = 0
    to = link("/dead-letters", group=group)
    async with visit.admin() as admin:
        topic = groups.DEAD_LETTER_PREFIX + group
        async for _, stored in messages.in_time_order(admin, topic, begin_ms=first, end_ms=last):
            if sent == COUNT_MAX:
                break
            outcome = await messages.resend_dead_letter(admin, group, stored)
            if not isinstance(outcome, Sent):
                return Redirect(
                    to, "bad", f"{sent} are sent again, then {stored.message_id} failed: {outcome.remark}"
                )
            sent += 1
    return Redirect(to, "good", f"{sent} dead letters are sent again; the group receives them.")


async def _read(visit: Visit, group: str, since_ms: int) -> list[StoredMessage]:
    topic = groups.DEAD_LETTER_PREFIX + group
    found: list[StoredMessage] = []
    async with visit.admin() as admin:
        try:
            async for _, stored in messages.in_time_order(
                admin, topic, begin_ms=since_ms, end_ms=messages.TIME_MAX
            ):
                found.append(stored)
                if len(found) > COUNT_MAX:
                    break
        except NoRouteError:  # the topic begins with the first dead letter
            return []
    return found


def _row(visit: Visit, group: str, stored: StoredMessage) -> tuple[Cell | str, ...]:
    id_, stored_at, _, keys, _, _, body = message_row(stored)
    row = (id_, stored_at, stored.message.properties.get(RETRY_TOPIC, "–"), keys, body)
    if not visit.allows_changes:
        return row
    values = {"group": group, "id": stored.offset_message_id}
    button = Button("Send again", "/dead-letters/resend", values, f"Send {stored.message_id} again")
    return (*row, Cell("", button=button))


def _all_form(group: str, shown: list[StoredMessage]) -> Form:
    fields = [
        Field("group", "", group, "hidden"),
        Field("first_ms", "", str(shown[0].store_timestamp_ms), "hidden"),
        Field("last_ms", "", str(shown[-1].store_timestamp_ms), "hidden"),
    ]
    note = "Only this group receives the copies, with the same message ids. Mend its listener first."
    return Form(
        f"Send all {len(shown)} again",
        "/dead-letters/resend-all",
        fields,
        "Send all again",
        note=note,
        is_folded=True,
    )


def _require_dead(stored: StoredMessage, group: str) -> None:
    if stored.message.topic != groups.DEAD_LETTER_PREFIX + group:
        raise FormError(f"id is {stored.offset_message_id}, a dead letter of group {group} expected")
