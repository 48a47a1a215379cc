"""Resets the offsets of a group: the form, which pages of topics and of groups have, and its execution."""

from typing import Final

from mqproof.impl.admin import groups
from mqproof.impl.console.form_values import FormError, FormValues
from mqproof.impl.console.page_parts import Field, Form, Redirect, link
from mqproof.impl.console.visit import Visit
from mqproof.impl.remoting.topic_names import NAME_CHARACTERS_MAX

_TARGETS: Final = (
    ("time", "a time"),
    ("begin", "the first message"),
    ("end", "the end: skip all messages that wait"),
)


def reset_form(*, topic: str = "", group: str = "") -> Form:
    """Return the form of a page about this topic or group."""
    given = {"topic": topic, "group": group}
    names = [
        Field(name, "", value, "hidden")
        if value
        else Field(name, name.title(), is_required=True, most=NAME_CHARACTERS_MAX)
        for name, value in given.items()
    ]
    fields = [
        *names,
        Field("target", "Continue at", "time", "select", _TARGETS),
        Field("time", "Time", type="datetime-local", hint="The first message stored at this time or later."),
    ]
    note = (
        "The group receives messages again, or never receives those that it skips. Connected members are "
        "notified; look at the progress afterwards."
    )
    return Form(
        "Reset offsets", "/consumer/reset", fields, "Reset", note=note, is_folded=True, is_danger=True
    )


async def reset(visit: Visit) -> Redirect:
    """Reset the offsets of a group in a topic at all brokers."""
    values = visit.values
    topic, group = values.name("topic"), values.name("group")
    time_ms = _time_ms(values)
    async with visit.admin() as admin:
        offsets = await groups.reset_offsets(admin, group, topic, time_ms)
    if not offsets:
        return Redirect(
            link("/consumer", group=group), "warn", f"No offset of {group} in {topic} was changed."
        )
    least, most = min(offsets.values()), max(offsets.values())
    text = f"{group} continues in {len(offsets)} queues of {topic}, at offsets {least} to {most}."
    return Redirect(link("/consumer", group=group), "good", text)


def _time_ms(values: FormValues) -> int:
    target = values.choice("target", {name: name for name, _ in _TARGETS}, "time")
    if target != "time":
        return groups.END if target == "end" else 0
    if (time_ms := values.time_ms("time")) is None:
        raise FormError("time is empty, a time expected")
    return time_ms
