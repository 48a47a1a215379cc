"""Commands about messages."""

import codecs
from typing import Annotated, Any

from impl.admin import messages, tables, times
from impl.admin.admin import Admin
from impl.admin.options import Begin, End, NameServers, Topic, count, flag, text
from impl.admin.run import WRONG_USE, fail, perform, say, show
from impl.client.model import ClientError, MessageQueue
from impl.message import KEYS, TAGS, StoredMessage


def query_msg_by_id(
    namesrv: NameServers,
    message_id: Annotated[str, text("i", "msgId", "ID", "The broker's id; with -t the producer's.")],
    topic: Annotated[str | None, text("t", "topic", "NAME", "The topic of a producer's id.")] = None,
) -> None:
    """One message, by its id.

    By the broker's offset message id, or with -t by the producer's unique key.

    Example: mqproof admin queryMsgById -n 127.0.0.1:9876 -i 7F00000100002A9F0000000000000000
    """

    async def work(admin: Admin) -> None:
        if topic is None:
            found = [await messages.by_offset_id(admin, message_id)]
        else:
            found = await messages.by_key(admin, topic, message_id, unique=True)
        if not found:
            raise ClientError(f"no message {message_id} in topic {topic}")
        show(tables.message(found[-1]))
        say("")
        for line in found[-1].message.body.decode(errors="replace").splitlines():
            say(tables.visible(line))

    perform(namesrv, work)


def query_msg_by_key(
    namesrv: NameServers,
    topic: Topic,
    key: Annotated[str, text("k", "msgKey", "KEY", "One of the message's keys.")],
    begin: Begin = None,
    end: End = None,
    count_max: Annotated[int, count("m", "maxNum", "At most so many.")] = 64,
) -> None:
    """The messages of a topic that have a key.

    Example: mqproof admin queryMsgByKey -n 127.0.0.1:9876 -t T -k order-17
    """

    async def work(admin: Admin) -> None:
        found = await messages.by_key(
            admin, topic, key, count_max=count_max, begin_ms=begin or 0, end_ms=end or messages.TIME_MAX
        )
        if not found:
            raise ClientError(f"no message with key {key} in topic {topic}")
        show(tables.messages(found))

    perform(namesrv, work)


def print_msg(
    namesrv: NameServers,
    topic: Topic,
    tags: Annotated[str, text("s", "subExpression", "TAGS", "TagA || TagB, * is all.")] = "*",
    begin: Begin = None,
    end: End = None,
    body: Annotated[Any, flag("d", "printBody", "With their bodies.")] = "true",
    charset: Annotated[str, text("c", "charsetName", "NAME", "How bodies are read.")] = "UTF-8",
) -> None:
    """Every message of a topic, one a line.

    Queue by queue: queue, offset, id, time stored, tags, keys, body.

    Example: mqproof admin printMsg -n 127.0.0.1:9876 -t T -s TagA -b 2026-05-01#08:00:00:000
    """
    try:
        codecs.lookup(charset)
    except LookupError:
        fail(f"-c: {charset!r} is no character set", WRONG_USE)

    async def work(admin: Admin) -> None:
        async for queue, stored in messages.read(admin, topic, tags=tags, begin_ms=begin, end_ms=end):
            text = stored.message.body.decode(charset, errors="replace")
            say(tables.visible(f"{_line(queue, stored)}  {text}" if body else _line(queue, stored)))

    perform(namesrv, work)


def _line(queue: MessageQueue, stored: StoredMessage) -> str:
    properties = stored.message.properties
    return "  ".join(
        (
            f"{queue.broker_name}:{queue.queue_id}",
            str(stored.queue_offset),
            stored.message_id,
            times.show(stored.store_timestamp_ms),
            properties.get(TAGS, "-"),
            properties.get(KEYS, "-"),
        )
    )
