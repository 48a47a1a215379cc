"""The messages: found by time, key or id; one message with its trace and why a group has not consumed it."""

from typing import Final

from mqproof.impl.admin import groups, messages, times
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.messages import KeyKind
from mqproof.impl.admin.topic_rates import message_track
from mqproof.impl.client.model import ClientError, NoRouteError, Outcome, Refused, Sent
from mqproof.impl.client.tracing.trace_records import CallBegan, CallEnded, Published, TraceRecord
from mqproof.impl.console.message_window import MessageWindow, read_window
from mqproof.impl.console.page_parts import (
    Cell,
    Facts,
    Field,
    Form,
    Links,
    Note,
    Page,
    Part,
    Redirect,
    Table,
    Text,
    columns,
    counted,
    link,
)
from mqproof.impl.console.pages.message_diagnosis import diagnosis
from mqproof.impl.console.visit import Visit
from mqproof.impl.remoting.message import KEYS, TAGS, StoredMessage
from mqproof.impl.remoting.topic_names import NAME_CHARACTERS_MAX
from mqproof.impl.runtime.network import Address

COUNT_MAX: Final = 100
"""The most messages on one page."""
BODY_BYTES_SHOWN: Final = 64 * 1024
_WAYS: Final = {"time": "By time", "key": "By key", "id": "By id"}
_START_BYTES: Final = 40
"""How much of a body a table shows."""
_KEYS_WHOLE: Final = 20
"""Keys of at most this length stay on one line."""
_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000

_WHY: Final = {
    "CONSUMED": ("good", "The group's offset is beyond the message."),
    "NOT_CONSUME_YET": (
        "warn",
        "The group is connected, but has not come so far: it lags, or its listener fails or hangs.",
    ),
    "NOT_ONLINE": ("bad", "No member of the group is connected: start a consumer."),
    "PULL": ("warn", "The group pulls, and has not committed an offset beyond the message."),
    "CONSUME_BROADCASTING": ("quiet", "Each member keeps its own offset, so that the broker does not know."),
    "UNKNOWN": (
        "warn",
        "The group has no offset in this queue: it is new here, or no member reads the queue.",
    ),
}
"""For each state of a group: its tone, and what it means."""


async def message_list(visit: Visit) -> Page:
    """Find messages by topic and time, by key, or by id."""
    by = visit.values.choice("by", {way: way for way in _WAYS}, "time")
    topic = visit.values.text("topic", most=NAME_CHARACTERS_MAX)
    ways = [(name, link("/messages", by=way, topic=topic)) for way, name in _WAYS.items()]
    parts: list[Part] = [Links("Ways to find messages", ways, _WAYS[by])]
    if by == "time":
        parts += await _by_time(visit, topic)
    elif by == "key":
        parts += await _by_key(visit, topic)
    else:
        parts.append(_id_form(topic))
    return Page("Messages", "/messages", parts)


async def message(visit: Visit) -> Page:
    """Return one message: its properties, body, the state of each group, and its trace."""
    id_, topic = visit.values.required("id", most=255), visit.values.text("topic", most=NAME_CHARACTERS_MAX)
    async with visit.admin() as admin:
        stored = await find(admin, id_, topic)
        track, problem = await _track(admin, stored)
        traces = await _traces(admin, stored)
        why = await diagnosis(visit, admin, stored)
    parts: list[Part] = [_facts(stored), _body(stored.message.body), track]
    if problem:
        parts.append(Note("warn", problem))
    parts += [why, traces, Facts("Properties", sorted(stored.message.properties.items()), is_folded=True)]
    if visit.allows_changes:
        parts += _forms(stored)
    back = (link("/messages", topic=stored.message.topic), "Messages")
    return Page("Message", "/messages", parts, stored.message_id, back)


async def resend(visit: Visit) -> Redirect:
    """Send a message to its topic again."""
    async with visit.admin() as admin:
        stored = await messages.by_offset_id(admin, visit.values.required("id", most=64))
        outcome = await messages.resend(admin, stored)
    return outcome_notice(outcome, link("/message", id=stored.offset_message_id))


async def consume(visit: Visit) -> Redirect:
    """Have one connected member of a group consume a message."""
    values = visit.values
    group, client = values.name("group"), values.text("client", most=255)
    async with visit.admin() as admin:
        stored = await messages.by_offset_id(admin, values.required("id", most=64))
        if not client:
            members = await groups.connection(admin, group)
            if members is None:
                raise ClientError(f"no member of group {group} is connected")
            client = members.connection_set[0].client_id
        host, port = stored.message.store_host
        done = await messages.consume_directly(
            admin, Address(host, port), group, client, stored.offset_message_id
        )
    is_good = done.consume_result in ("CR_SUCCESS", "CR_COMMIT")
    text = f"{client} reports {done.consume_result} after {done.spent_time_mills} ms. {done.remark or ''}"
    return Redirect(link("/message", id=stored.offset_message_id), "good" if is_good else "bad", text)


async def find(admin: Admin, id_: str, topic: str) -> StoredMessage:
    """Return the message with an offset message id, or in a topic with a unique key."""
    if topic:
        if found := await messages.by_key(admin, topic, id_, kind=KeyKind.UNIQUE):
            return found[-1]
        raise NoRouteError(f"no message {id_} in topic {topic}")
    return await messages.by_offset_id(admin, id_)


def outcome_notice(outcome: Outcome, to: str) -> Redirect:
    """Return to a page with the outcome of a send."""
    if isinstance(outcome, Sent):
        return Redirect(
            to, "good", f"{outcome.status}: a copy is in {outcome.queue} at offset {outcome.queue_offset}."
        )
    sure = "is not stored" if isinstance(outcome, Refused) else "may be stored"
    return Redirect(to, "bad", f"The copy {sure}: {outcome.remark}")


def message_table(title: str, found: list[StoredMessage], empty: str, note: str = "") -> Table:
    """Return one row for each message."""
    titles = columns("Message", "Stored", "Tag", "Keys", "Queue", "#Offset", "Body")
    return Table(title, titles, [message_row(stored) for stored in found], empty, note=note)


def message_row(stored: StoredMessage) -> tuple[Cell | str, ...]:
    it = stored.message
    return (
        Cell(
            stored.message_id, href=link("/message", id=stored.offset_message_id), is_code=True, is_whole=True
        ),
        Cell(times.show(stored.store_timestamp_ms), is_whole=True),
        it.properties.get(TAGS, "–"),
        Cell(keys := it.properties.get(KEYS, "–"), is_whole=len(keys) <= _KEYS_WHOLE),
        str(it.queue_id),
        f"{stored.queue_offset:,}",
        _start(it.body),
    )


async def _by_time(visit: Visit, topic: str) -> list[Part]:
    now_ms = int(visit.console.now_s()) * 1000
    window = MessageWindow.of(visit.values, now_ms - _HOUR_MS, now_ms + _MINUTE_MS)
    fields = [
        _topic_field(topic),
        Field("begin", "From", local_time(window.begin_ms), "datetime-local"),
        Field("end", "Until", local_time(window.end_ms), "datetime-local"),
    ]
    note = "Retry and dead letter topics too: %RETRY%GROUP, %DLQ%GROUP."
    form = Form("Topic and time", "/messages", fields, "Find", "get", note=note)
    if not topic:
        return [form]
    async with visit.admin() as admin:
        shown, following = await read_window(admin, topic, window, COUNT_MAX)
    empty = f"Topic {topic} has no message that was stored in this time. Choose an earlier start."
    note = "In the order in which brokers stored them."
    parts: list[Part] = [form, message_table(counted(len(shown), "message"), shown, empty, note)]
    if following is not None:
        times_of = {"begin": local_time(following.begin_ms), "end": local_time(following.end_ms)}
        later = link("/messages", topic=topic, **times_of, skip=following.skip)
        parts.append(Links("More messages", [("Later messages", later)]))
    return parts


async def _by_key(visit: Visit, topic: str) -> list[Part]:
    key = visit.values.text("key", most=255)
    fields = [
        Field("by", "", "key", "hidden"),
        _topic_field(topic),
        Field("key", "Key", key, is_required=True, most=255),
    ]
    form = Form(
        "Topic and key",
        "/messages",
        fields,
        "Find",
        "get",
        note="A key that the producer has set, such as the number of an order.",
    )
    if not (topic and key):
        return [form]
    async with visit.admin() as admin:
        found = await messages.by_key(admin, topic, key)
    empty = f"No message of topic {topic} has the key {key}. Keys are case-sensitive and must be whole."
    return [form, message_table(counted(len(found), "message"), found, empty, "At most 64, oldest first.")]


def _id_form(topic: str) -> Form:
    fields = [
        Field("id", "Message id", is_required=True, most=255),
        Field(
            "topic",
            "Topic",
            topic,
            most=NAME_CHARACTERS_MAX,
            hint="Needed for a producer's id (unique key); empty for a broker's id (offset message id).",
        ),
    ]
    return Form("Message id", "/message", fields, "Find", "get")


def _topic_field(topic: str) -> Field:
    return Field("topic", "Topic", topic, is_required=True, most=NAME_CHARACTERS_MAX)


def local_time(milliseconds: int) -> str:
    """Return a local time as browsers write it."""
    return times.show(milliseconds).replace(" ", "T").removesuffix(".000")


def _facts(stored: StoredMessage) -> Facts:
    it = stored.message
    born, kept = (f"{host}:{port}" for host, port in (it.born_host, it.store_host))
    return Facts(
        "Overview",
        [
            ("Topic", Cell(it.topic, href=link("/topic", name=it.topic))),
            ("Tag", it.properties.get(TAGS, "–")),
            ("Keys", it.properties.get(KEYS, "–")),
            ("Queue and offset", f"{it.queue_id}, {stored.queue_offset:,}"),
            ("Born", f"{times.show(it.born_timestamp_ms)} at {born}"),
            ("Stored", f"{times.show(stored.store_timestamp_ms)} at {kept}"),
            ("Times redelivered", str(it.reconsume_times)),
            ("Offset message id", Cell(stored.offset_message_id, is_code=True)),
            ("Commit log offset", f"{stored.commit_offset:,}"),
            ("Body", f"{len(it.body):,} bytes"),
        ],
    )


def _body(body: bytes) -> Text:
    shown = body[:BODY_BYTES_SHOWN]
    note = f"The first {BODY_BYTES_SHOWN:,} of {len(body):,} bytes." if len(body) > len(shown) else ""
    try:
        text = shown.decode() if len(shown) == len(body) else shown.decode(errors="ignore")
    except UnicodeDecodeError:
        rows = [shown[at : at + 16] for at in range(0, min(len(shown), 4096), 16)]
        text = "\n".join(f"{16 * number:08x}  {row.hex(' '):<47}" for number, row in enumerate(rows))
        note = f"Not UTF-8 text: the first {min(len(body), 4096):,} of {len(body):,} bytes in hexadecimal."
    return Text("Body", text, note)


def _start(body: bytes) -> Cell:
    text = body[:_START_BYTES].decode(errors="replace")
    return Cell(text + ("…" if len(body) > _START_BYTES else ""), is_code=True)


async def _track(admin: Admin, stored: StoredMessage) -> tuple[Table, str]:
    problem, found = "", list[tuple[str, str]]()
    try:
        found = await message_track(admin, stored)
    except ClientError as error:
        problem = f"The state of the groups is not known: {error}"
    rows = []
    for group, state in found:
        tone, meaning = _WHY.get(state, ("warn", state))
        rows.append((Cell(group, href=link("/consumer", group=group)), Cell(state, tone=tone), meaning))
    titles = columns("Group", "State", "Why")
    note = "By the offsets of the groups: a message that failed or was skipped counts as consumed."
    return Table("Was it consumed?", titles, rows, "No group consumes its topic.", note=note), problem


async def _traces(admin: Admin, stored: StoredMessage) -> Table:
    empty = "No trace of this message. Clients send traces only if they are asked to, and may lose some."
    found: list[TraceRecord] = []
    try:
        found = await messages.traces_of(admin, stored.message_id)
    except ClientError as error:
        empty = f"There are no traces: {error}. Clients send traces only if they are asked to."
    titles = columns("Time", "What", "Group", "#ms", "Result")
    return Table("Trace", titles, [_trace_row(record) for record in found], empty)


def _trace_row(record: TraceRecord) -> tuple[Cell | str, ...]:
    when = times.show(record.time_ms) or "–"
    match record:
        case Published():
            result = Cell("SEND_OK", tone="good") if record.ok else Cell("not confirmed", tone="warn")
            return (when, f"sent to {record.store_host}", record.group, str(record.took_ms), result)
        case CallBegan():
            return (when, f"delivery {record.redeliveries + 1} begins", record.group, "–", "–")
        case CallEnded():
            result = (
                Cell("consumed", tone="good")
                if record.ok
                else Cell(f"failed, code {record.context}", tone="bad")
            )
            return (when, "delivery ends", record.group, str(record.took_ms), result)


def _forms(stored: StoredMessage) -> list[Part]:
    hidden = Field("id", "", stored.offset_message_id, "hidden")
    group = Field("group", "Group", is_required=True, most=NAME_CHARACTERS_MAX)
    client = Field("client", "Member", most=255, hint="A client id; empty for any connected member.")
    again = "Every group of the topic receives the copy, under the same message id."
    return [
        Form("Send it again", "/message/resend", [hidden], "Send a copy", note=again, is_folded=True),
        Form(
            "Let one member consume it",
            "/message/consume",
            [hidden, group, client],
            "Consume",
            note="The offsets of the group do not change.",
            is_folded=True,
        ),
    ]
