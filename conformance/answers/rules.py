"""The rules for the answers to each request. Each rule yields what is wrong, with the section that says so.

A rule compares an answer with its request and with `Known`, which has what earlier answers established.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from mqproof.conformance.answers import request_and_answer as requests
from mqproof.conformance.answers.known import STORED_CODES, UNIQUE_KEY, Known, messages
from mqproof.conformance.answers.record_rules import Looked, record_is_true
from mqproof.conformance.answers.request_and_answer import Exchange, Wrong
from mqproof.conformance.answers.stored_record import (
    RecordError,
    StoredRecord,
    java_hash,
    offset_message_id,
    read_records,
)
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame

Rule = Callable[[Known, Exchange], Iterator[Wrong]]

FOUND: Final = 0
NOT_FOUND: Final = 19
RETRY: Final = 20
MOVED: Final = 21
_PULLED: Final = frozenset({FOUND, NOT_FOUND, RETRY, MOVED})
_PULL_FIELDS: Final = ("nextBeginOffset", "minOffset", "maxOffset", "suggestWhichBrokerId")
_HAS_SUBSCRIPTION: Final = 4
_OWN_CODE: Final = 8
_MESSAGES_MAX: Final = 32
_BYTES_MAX: Final = 256 << 10
_RECORD_BYTES_MIN: Final = 91
_REFUSED_ACCOUNT: Final = "AclException"
_ID_CHARACTERS: Final = frozenset({32, 56})


def wrong_in(known: Known, exchange: Exchange) -> Iterator[Wrong]:
    """Yield everything that is wrong in an answer, and keep what it establishes."""
    if exchange.answer.code == 1 and not exchange.answer.remark:
        yield Wrong(chapters.REMOTING_COMMAND, "SYSTEM_ERROR without a remark")
    if exchange.answer.is_own_error:
        yield Wrong(chapters.REMOTING_COMMAND, f"an error of the server itself: {exchange.answer.remark}")
    for rule in _RULES.get(exchange.request.code, ()):
        yield from rule(known, exchange)


# Sending


def send_answer(known: Known, exchange: Exchange) -> Iterator[Wrong]:
    """The answer to a send names the place of the message."""
    answer = exchange.answer
    if (answer.remark or "").startswith(_REFUSED_ACCOUNT):
        return
    for name in ("MSG_REGION", "TRACE_ON"):
        if name not in answer.fields:
            yield Wrong(chapters.SEND_REQUESTS, f"the answer has no {name}")
    if answer.code not in STORED_CODES:
        return
    queue_offset, queue_id = exchange.answered("queueOffset"), exchange.answered("queueId")
    if queue_offset is None or queue_offset < 0:
        yield Wrong(chapters.SEND_REQUESTS, f"queueOffset {answer.fields.get('queueOffset')!r}")
    asked_queue = exchange.number("queueId")
    if queue_id is None or (asked_queue >= 0 and queue_id != asked_queue):
        yield Wrong(chapters.SEND_REQUESTS, f"queueId {queue_id}, the request names {asked_queue}")
    sent = list(messages(exchange.request, exchange.client, exchange.asked_ms))
    key = sent[0].properties.get(UNIQUE_KEY) if len(sent) == 1 else None
    # 4.9 names the unique key only in the answer to a half message.
    is_named = known.is_exact or "transactionId" in answer.fields
    if key is not None and is_named and answer.fields.get("transactionId") != key:
        text = f"transactionId {answer.fields.get('transactionId')!r}, the unique key is {key!r}"
        yield Wrong(chapters.SEND_REQUESTS, text)
    ids = answer.fields.get("msgId", "").split(",")
    if len(ids) != len(sent):
        yield Wrong(chapters.BATCHES, f"{len(ids)} message ids for {len(sent)} messages")
    offsets = [int(each[-16:], 16) if _is_an_id(each) else -1 for each in ids]
    for each, offset in zip(ids, offsets, strict=True):
        if offset < 0 or each != offset_message_id(exchange.server, offset):
            yield Wrong(chapters.MESSAGE_IDS, f"msgId {each!r} of a message stored at {exchange.server}")
    yield from _in_order(known, exchange, offsets, queue_offset or 0)
    known.answered(exchange, offsets)


def _is_an_id(text: str) -> bool:
    return len(text) in _ID_CHARACTERS and all(character in "0123456789ABCDEF" for character in text)


def _in_order(known: Known, exchange: Exchange, offsets: list[int], queue_offset: int) -> Iterator[Wrong]:
    """Messages that are sent after an answer are stored behind its message."""
    last = known.last
    if last and last.answered_at < exchange.asked_at:
        text = f"stored at commit offset {offsets[0]}, the one answered before at {last.commit_offset}"
        if offsets[0] < last.commit_offset + _RECORD_BYTES_MIN + len(last.body):
            yield Wrong(chapters.COMMIT_LOG, text)
        is_there = exchange.fields.get("topic") == last.topic and exchange.number("queueId") == last.queue_id
        sent = next(messages(exchange.request, exchange.client, exchange.asked_ms))
        if is_there and last.is_direct and sent.is_direct and queue_offset <= last.queue_offset:
            text = f"queueOffset {queue_offset}, the one answered before has {last.queue_offset}"
            yield Wrong(chapters.CONSUME_QUEUE, text)


# Pulling


def pull_answer(known: Known, exchange: Exchange) -> Iterator[Wrong]:
    """The offsets in the answer to a pull agree with its code and with the request."""
    answer = exchange.answer
    if answer.code not in _PULLED:
        return
    values = {name: exchange.answered(name) for name in _PULL_FIELDS}
    if missing := [name for name, value in values.items() if value is None]:
        yield Wrong(chapters.PULL_REQUESTS, f"the answer has no number {missing[0]}")
        return
    following, low, high, suggested = (value or 0 for value in values.values())
    offset = exchange.number("queueOffset")
    if not 0 <= low <= high:
        yield Wrong(chapters.GET_STATUSES, f"minOffset {low} and maxOffset {high}")
    if suggested != 0 and known.is_exact:
        yield Wrong(chapters.PULL_REQUESTS, f"suggestWhichBrokerId {suggested}, while slaveReadEnable is off")
    expected = {
        FOUND: low <= offset < following <= high,
        NOT_FOUND: following == offset >= high,
        RETRY: low <= offset < following <= high,
        MOVED: following in (low, high) and not low <= offset < high,
    }
    if not expected[answer.code]:
        observed = f"code {answer.code} and nextBeginOffset {following}"
        text = f"{observed} for {offset} in a queue from {low} to {high}"
        yield Wrong(chapters.GET_STATUSES, text)
    if (answer.code == FOUND) != bool(answer.body):
        yield Wrong(chapters.PULL_REQUESTS, f"code {answer.code} with a body of {len(answer.body)} bytes")
    yield from _not_back(known.begins, exchange, low, "begin")
    yield from _not_back(known.ends, exchange, high, "end")
    if answer.code in (FOUND, RETRY):
        yield from _pulled_records(known, exchange, range(max(offset, low), following))


def _pulled_records(known: Known, exchange: Exchange, examined: range) -> Iterator[Wrong]:
    """The records are those of the examined offsets that the subscription selects."""
    topic, queue_id = queue = _queue(exchange)
    codes = _tag_codes(exchange)
    before = examined.start - 1
    found = set()
    records = _read(known, exchange, topic)
    for record in records:
        if isinstance(record, Wrong):
            yield record
            continue
        found.add(record.queue_offset)
        if record.queue_id != queue_id:
            yield Wrong(chapters.LOG_RECORD, f"a record of queue {record.queue_id}, asked for {queue_id}")
        if not before < record.queue_offset < examined.stop:
            yield Wrong(chapters.GET_STATUSES, f"queue offset {record.queue_offset} behind {before}")
        before = record.queue_offset
        if codes is not None and java_hash(record.properties.get("TAGS", "")) not in codes:
            text = f"tag {record.properties.get('TAGS')!r} for {exchange.fields.get('subscription')!r}"
            yield Wrong(chapters.PULL_REQUESTS, text)
    count, most = len(found), min(_MESSAGES_MAX, max(exchange.number("maxMsgNums"), 1))
    if count > most or (count > 1 and len(exchange.answer.body) > _BYTES_MAX):
        text = f"{count} messages and {len(exchange.answer.body)} bytes, at most {most} and {_BYTES_MAX}"
        yield Wrong(chapters.PULL_REQUESTS, text)
    if _names_its_tags(exchange):
        for offset, sent in known.places[queue].items():
            is_selected = codes is None or java_hash(sent.properties.get("TAGS", "")) in codes
            if offset in examined and is_selected and offset not in found:
                yield Wrong(chapters.GET_STATUSES, f"offset {offset} is left out, next is {examined.stop}")


def _names_its_tags(exchange: Exchange) -> bool:
    """Return whether the pull itself says which tags it wants."""
    has = exchange.number("sysFlag") & _HAS_SUBSCRIPTION
    return bool(has) and exchange.fields.get("expressionType", "TAG") == "TAG"


def _tag_codes(exchange: Exchange) -> frozenset[int] | None:
    """Return the codes of the tags that the pull names; None if it does not select by tags."""
    expression = exchange.fields.get("subscription", "")
    has = _names_its_tags(exchange) and not exchange.number("sysFlag") & _OWN_CODE
    if not has or expression in ("", "*") or exchange.fields.get("topic", "").startswith("%RETRY%"):
        return None
    return frozenset(java_hash(tag.strip()) for tag in expression.split("||") if tag.strip())


# Offsets


def end_of_queue(known: Known, exchange: Exchange) -> Iterator[Wrong]:
    if exchange.answer.code == 0:
        yield from _not_back(known.ends, exchange, exchange.answered("offset"), "end")


def begin_of_queue(known: Known, exchange: Exchange) -> Iterator[Wrong]:
    if exchange.answer.code == 0:
        yield from _not_back(known.begins, exchange, exchange.answered("offset"), "begin")


def _queue(exchange: Exchange) -> tuple[str, int]:
    return exchange.fields.get("topic", ""), exchange.number("queueId")


def _not_back(
    known: dict[tuple[str, int], tuple[int, int]], exchange: Exchange, offset: int | None, name: str
) -> Iterator[Wrong]:
    """The beginning and the end of a queue never go back between an answer and a later request."""
    queue = _queue(exchange)
    before, answered_at = known.get(queue, (0, -1))
    if offset is None or (offset < before and answered_at < exchange.asked_at):
        yield Wrong(chapters.CONSUME_QUEUE, f"the {name} of the queue is {offset}, and was {before} before")
    if offset is not None and offset >= before:
        known[queue] = offset, exchange.answered_at


# Messages by another way than their offset


def viewed_message(known: Known, exchange: Exchange) -> Iterator[Wrong]:
    """VIEW_MESSAGE_BY_ID returns the one record at the commit offset."""
    if exchange.answer.code != 0:
        return
    offset = exchange.number("offset")
    records = list(_read(known, exchange, ""))
    if [each.commit_offset for each in records if isinstance(each, StoredRecord)] != [offset]:
        yield Wrong(chapters.MESSAGE_QUERIES, f"other messages than the one at commit offset {offset}")
    yield from (each for each in records if isinstance(each, Wrong))


def messages_by_key(known: Known, exchange: Exchange) -> Iterator[Wrong]:
    """QUERY_MESSAGE returns messages of the period with the key, in the order of the log."""
    if exchange.answer.code != 0:
        return
    key, topic = exchange.fields.get("key", ""), exchange.fields.get("topic", "")
    is_unique = exchange.request.fields.get("_UNIQUE_KEY_QUERY") == "true"
    before, count = -1, 0
    for record in _read(known, exchange, topic):
        if isinstance(record, Wrong):
            yield record
            continue
        count += 1
        keys = [record.properties.get(UNIQUE_KEY, "")]
        keys += [] if is_unique else record.properties.get("KEYS", "").split(" ")
        if known.is_exact and key not in keys:
            yield Wrong(chapters.MESSAGE_QUERIES, f"a message with the keys {keys}, asked for {key!r}")
        if record.commit_offset <= before:
            yield Wrong(chapters.MESSAGE_QUERIES, f"commit offset {record.commit_offset} behind {before}")
        before = record.commit_offset
        period = range(exchange.number("beginTimestamp"), exchange.number("endTimestamp", 1 << 63) + 1)
        if known.is_exact and record.store_ms not in period:
            yield Wrong(chapters.MESSAGE_QUERIES, f"store time {record.store_ms}, not in {period}")
    if not count or (not is_unique and count > exchange.number("maxNum")):
        yield Wrong(chapters.MESSAGE_QUERIES, f"{count} messages, asked for {exchange.fields.get('maxNum')}")


def _read(known: Known, exchange: Exchange, topic: str) -> Iterator[StoredRecord | Wrong]:
    """Yield the records of an answer, and what is wrong with them. An empty topic stands for any."""
    try:
        for record in read_records(exchange.answer.body):
            looked = Looked(known.stored_at or exchange.server, topic or record.topic, exchange.answered_ms)
            yield from record_is_true(known, looked, record)
            yield record
    except RecordError as error:
        yield Wrong(chapters.LOG_RECORD, str(error))


def checked_transaction(known: Known, request: Frame) -> Iterator[Wrong]:
    """CHECK_TRANSACTION_STATE names the copy, and contains it with its real topic and queue."""
    fields = request.fields
    key = fields.get("msgId", "")
    try:
        (record,) = read_records(request.body)
    except ValueError as error:
        yield Wrong(chapters.CHECKS, f"the body is not one record: {error}")
        return
    values: list[tuple[str, object, object]] = [
        ("transactionId", key, fields.get("transactionId")),
        ("unique key", key, record.properties.get(UNIQUE_KEY)),
        ("commitLogOffset", str(record.commit_offset), fields.get("commitLogOffset")),
        ("tranStateTableOffset", str(record.queue_offset), fields.get("tranStateTableOffset")),
    ]
    if half := next(iter(known.by_key.get(key, ())), None):
        values += [
            ("topic", half.topic, record.topic),
            ("queue id", half.queue_id, record.queue_id),
            ("body", half.body, record.body),
            ("flag", half.flag, record.flag),
            ("born time", half.born_ms, record.born_ms),
        ]
    for name, expected, observed in values:
        if expected != observed:
            yield Wrong(chapters.CHECKS, f"{name} {observed!r}, expected {expected!r}")


def deleted_topic(known: Known, exchange: Exchange) -> Iterator[Wrong]:
    """Deletes nothing but what is known about the topic."""
    known.topic_deleted(exchange.fields.get("topic", ""))
    yield from ()


_RULES: Final[Mapping[int, tuple[Rule, ...]]] = {
    **dict.fromkeys((requests.SEND, requests.SEND_V2, requests.SEND_BATCH), (send_answer,)),
    **dict.fromkeys((requests.PULL, requests.LITE_PULL), (pull_answer,)),
    requests.GET_MAX_OFFSET: (end_of_queue,),
    requests.GET_MIN_OFFSET: (begin_of_queue,),
    requests.VIEW_MESSAGE: (viewed_message,),
    requests.QUERY_MESSAGE: (messages_by_key,),
    requests.DELETE_TOPIC: (deleted_topic,),
}
"""The rules by request code."""
