"""Commands about messages."""

import codecs
from typing import Annotated, Any

import typer

from mqproof.impl.admin import messages, tables, times
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.options import AtCluster, Begin, End, Topic, count, flag, parsed, text
from mqproof.impl.admin.run import WRONG_USE, Site, fail, perform, say, show
from mqproof.impl.admin.topic_rates import message_track
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, MessageQueue, Refused, Sent
from mqproof.impl.client.tracing.trace_records import TRACE_TOPIC
from mqproof.impl.remoting.message import KEYS, TAGS, StoredMessage
from mqproof.impl.runtime.network import Address


def _kind(value: str) -> messages.KeyKind:
    if value not in ("K", "T"):
        raise ValueError(f"{value!r}, K or T expected")
    return messages.KeyKind(value)


_KIND = typer.Option("-p", "--keyType", parser=parsed("p", _kind), metavar="K|T", help="K: a key; T: a tag.")


def require_charset(letter: str, name: str) -> None:
    try:
        codecs.lookup(name)
    except LookupError:
        fail(f"-{letter}: {name!r} is not a known character set", WRONG_USE)


def query_msg_by_id(
    site: Site,
    ids: Annotated[
        str, text("i", "msgId", "ID,ID", "Offset message ids; with -t, unique keys of the producer.")
    ],
    topic: Annotated[
        str | None, text("t", "topic", "NAME", "The topic of the messages, if -i is a unique key.")
    ] = None,
    cluster: AtCluster = None,
    charset: Annotated[str, text("f", "bodyFormat", "NAME", "The character set of the body.")] = "UTF-8",
    group: Annotated[
        str | None,
        text("g", "consumerGroup", "NAME", "With -d: the group whose member consumes the message."),
    ] = None,
    client_id: Annotated[
        str | None, text("d", "clientId", "ID", "With -g: the client id of that member.")
    ] = None,
    resend: Annotated[Any, flag("s", "sendMessage", "Whether to send the message again.")] = "false",
) -> None:
    """Show messages by their ids.

    -i is the broker's offset message id, or with -t the producer's unique key. With -g and -d, a connected
    consumer consumes the message, whatever its queue and offset, and reports the result. With -s true, the
    message is sent to its topic again, and every group receives it again.

    Exit codes: 0 done; 1 a server refused, nothing was found, or the consumer failed; 2 wrong use; 4 no
    server answered.

    \b
    Example: mqproof admin queryMsgById -n 127.0.0.1:9876 -i 7F00000100002A9F0000000000000000
    """
    if (group is None) != (client_id is None):
        fail("-g and -d must be given together", WRONG_USE)
    if resend and group is not None:
        fail("give either -s true or -g and -d", WRONG_USE)
    require_charset("f", charset)

    async def work(admin: Admin) -> None:
        for message_id in ids.split(","):
            stored = await _found(admin, message_id, topic, cluster)
            if group is not None and client_id is not None:
                await _consume(admin, stored, group, client_id)
            elif resend:
                await _resend(admin, stored)
            else:
                _show(stored, charset)
                await _show_track(admin, stored)

    perform(site, work)


async def _found(admin: Admin, message_id: str, topic: str | None, cluster: str | None) -> StoredMessage:
    if topic is None:
        return await messages.by_offset_id(admin, message_id)
    found = await messages.by_key(admin, topic, message_id, kind=messages.KeyKind.UNIQUE, cluster=cluster)
    if not found:
        raise ClientError(f"no message {message_id} in topic {topic}")
    return found[-1]


def _show(stored: StoredMessage, charset: str) -> None:
    show(tables.message(stored))
    say("")
    for line in stored.message.body.decode(charset, errors="replace").splitlines():
        say(tables.visible(line))


async def _show_track(admin: Admin, stored: StoredMessage) -> None:
    if track := await message_track(admin, stored):
        say("")
        show(tables.rows(("consumer group", "state"), track))


async def _resend(admin: Admin, stored: StoredMessage) -> None:
    outcome = await messages.resend(admin, stored)
    if not isinstance(outcome, Sent):
        sure = "not stored" if isinstance(outcome, Refused) else "perhaps stored"
        raise ClientError(f"{stored.message_id} is {sure}: {outcome.remark}")
    say(f"{outcome.status} {outcome.message_id} {outcome.queue} offset {outcome.queue_offset}")


async def _consume(admin: Admin, stored: StoredMessage, group: str, client_id: str) -> None:
    host, port = stored.message.store_host
    done = await messages.consume_directly(
        admin, Address(host, port), group, client_id, stored.offset_message_id
    )
    said = f"{client_id}: {done.consume_result} after {done.spent_time_mills} ms"
    if done.consume_result not in ("CR_SUCCESS", "CR_COMMIT"):
        raise ClientError(f"{said}: {done.remark or 'no remark'}")
    say(tables.visible(said))


def query_msg_by_key(
    site: Site,
    topic: Topic,
    key: Annotated[str, text("k", "msgKey", "KEY", "One of the message's keys.")],
    begin: Begin = None,
    end: End = None,
    count_max: Annotated[int, count("m", "maxNum", "Show at most N messages.")] = 64,
    kind: Annotated[Any, _KIND] = "K",
    cluster: AtCluster = None,
) -> None:
    """Show the messages of a topic that have a key.

    With -p T, search for a tag instead. Only brokers of 5.x index tags; ours and those of 4.9 do not.

    \b
    Example: mqproof admin queryMsgByKey -n 127.0.0.1:9876 -t T -k order-17
    """

    async def work(admin: Admin) -> None:
        found = await messages.by_key(
            admin,
            topic,
            key,
            count_max=count_max,
            begin_ms=begin or 0,
            end_ms=end or messages.TIME_MAX,
            kind=kind,
            cluster=cluster,
        )
        if not found:
            raise ClientError(f"no message with {kind.name.lower()} {key} in topic {topic}")
        show(tables.messages(found))

    perform(site, work)


def query_msg_trace_by_id(
    site: Site,
    message_id: Annotated[str, text("i", "msgId", "ID", "The unique key of the message.")],
    topic: Annotated[str, text("t", "traceTopic", "NAME", "The topic of the traces.")] = TRACE_TOPIC,
    begin: Begin = None,
    end: End = None,
) -> None:
    """Show what clients have traced about a message.

    Producers report that it was stored, and consumers each call of their listener. Clients send traces only
    if they are asked to, and may lose some: an absent trace proves nothing.

    \b
    Example: mqproof admin queryMsgTraceById -n 127.0.0.1:9876 -i 7F0000010000B4AAC2F8A1B2C3D40001
    """

    async def work(admin: Admin) -> None:
        found = await messages.traces_of(
            admin, message_id, topic, begin_ms=begin or 0, end_ms=end or messages.TIME_MAX
        )
        if not found:
            raise ClientError(f"no trace of message {message_id} in topic {topic}")
        show(tables.traces(found))

    perform(site, work)


def print_msg(
    site: Site,
    topic: Topic,
    tags: Annotated[
        Any,
        typer.Option(
            "-s",
            "--subExpression",
            parser=parsed("s", MessageSelector.tag),
            metavar="TAGS",
            help="TagA || TagB; * selects all messages.",
        ),
    ] = "*",
    begin: Begin = None,
    end: End = None,
    body: Annotated[Any, flag("d", "printBody", "Whether to print the bodies.")] = "true",
    charset: Annotated[str, text("c", "charsetName", "NAME", "The character set of the bodies.")] = "UTF-8",
) -> None:
    """Print every message of a topic, one a line.

    The order is queue by queue. A line has the queue, offset, id, store time, tags, keys and body.

    \b
    Example: mqproof admin printMsg -n 127.0.0.1:9876 -t T -s TagA -b 2026-05-01#08:00:00:000
    """
    require_charset("c", charset)

    async def work(admin: Admin) -> None:
        async for queue, stored in messages.read(admin, topic, tags=tags, begin_ms=begin, end_ms=end):
            text = stored.message.body.decode(charset, errors="replace")
            say(tables.visible(f"{_line(queue, stored)}  {text}" if body else _line(queue, stored)))

    perform(site, work)


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
