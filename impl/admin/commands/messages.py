"""Commands about messages."""

import codecs
from collections import Counter
from contextlib import aclosing
from typing import Annotated, Any

import typer

from mqproof.impl.admin import messages, tables, times
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.options import AtCluster, Begin, End, Topic, count, flag, parsed, text, when
from mqproof.impl.admin.run import WRONG_USE, Site, fail, perform, say, show
from mqproof.impl.admin.topic_rates import message_track
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, MessageError, MessageQueue, Outcome, Refused, Sent
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.client.tracing.trace_records import TRACE_TOPIC
from mqproof.impl.remoting.bodies import QueueEntries
from mqproof.impl.remoting.message import KEYS, TAGS, StoredMessage
from mqproof.impl.runtime.network import Address


def _kind(value: str) -> messages.KeyKind:
    if value not in ("K", "T"):
        raise ValueError(f"{value!r}, K or T expected")
    return messages.KeyKind(value)


_KIND = typer.Option("-p", "--keyType", parser=parsed("p", _kind), metavar="K|T", help="K: a key; T: a tag.")


_TAGS = typer.Option(
    "-s",
    "--subExpression",
    parser=parsed("s", MessageSelector.tag),
    metavar="TAGS",
    help="TagA || TagB; * selects all messages.",
)
BrokerName = Annotated[str, text("b", "brokerName", "NAME", "The broker of the queue.")]
QueueId = Annotated[int, count("i", "queueId", "The number of the queue.", least=0)]


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
    _say_sent(await messages.resend(admin, stored))


def _say_sent(outcome: Outcome) -> None:
    if not isinstance(outcome, Sent):
        sure = "not stored" if isinstance(outcome, Refused) else "perhaps stored"
        raise ClientError(f"{outcome.message_id} is {sure}: {outcome.remark}")
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


def query_msg_by_unique_key(
    site: Site,
    topic: Topic,
    key: Annotated[str, text("i", "msgId", "KEY", "The unique key that the producer gave the message.")],
    cluster: AtCluster = None,
) -> None:
    """Show the messages of a topic that have a unique key. A send that was repeated may store several.

    \b
    Example: mqproof admin queryMsgByUniqueKey -n 127.0.0.1:9876 -t T -i 7F0000010000B4AAC2F8A1B2C3D40001
    """

    async def work(admin: Admin) -> None:
        found = await messages.by_key(admin, topic, key, kind=messages.KeyKind.UNIQUE, cluster=cluster)
        if not found:
            raise ClientError(f"no message {key} in topic {topic}")
        for number, stored in enumerate(found):
            if number:
                say("")
            _show(stored, "UTF-8")
            await _show_track(admin, stored)

    perform(site, work)


def query_msg_by_offset(
    site: Site,
    topic: Topic,
    broker_name: BrokerName,
    queue_id: QueueId,
    offset: Annotated[int, count("o", "offset", "The offset in the queue.", least=0)],
    charset: Annotated[str, text("f", "bodyFormat", "NAME", "The character set of the body.")] = "UTF-8",
) -> None:
    """Show the message at an offset of a queue.

    \b
    Example: mqproof admin queryMsgByOffset -n 127.0.0.1:9876 -t T -b broker-a -i 0 -o 5
    """
    require_charset("f", charset)

    async def work(admin: Admin) -> None:
        _show(await messages.by_offset(admin, MessageQueue(topic, broker_name, queue_id), offset), charset)

    perform(site, work)


def query_cq(
    site: Site,
    topic: Topic,
    queue_id: Annotated[int, count("q", "queue", "The number of the queue.", least=0)],
    first: Annotated[int, count("i", "index", "The offset of the first entry.", least=0)] = 0,
    entries: Annotated[int, count("c", "count", "Show at most N entries.")] = 10,
    broker_name: Annotated[
        str | None, text("b", "broker", "NAME", "The broker; needed if several have the topic.")
    ] = None,
    group: Annotated[
        str | None, text("g", "consumer", "NAME", "Show the subscription of this group too.")
    ] = None,
) -> None:
    """Show entries of a consume queue: where the messages are in the log, and their tags.

    \b
    Example: mqproof admin queryCq -n 127.0.0.1:9876 -t T -q 0 -i 0 -c 10
    """

    async def work(admin: Admin) -> None:
        name = broker_name
        if name is None:
            names = list(await admin.masters_of(topic))
            if len(names) != 1:
                raise ClientError(f"give -b: topic {topic} is at {', '.join(names) or 'no broker'}")
            name = names[0]
        queue = MessageQueue(topic, name, queue_id)
        found = await messages.queue_entries(admin, queue, first, entries, group)
        show(tables.queue_entries(first, found))
        if group is not None:
            say(_subscription(group, found))
        say(f"\nthe queue begins at {found.min_queue_index} and ends before {found.max_queue_index}")

    perform(site, work)


def _subscription(group: str, entries: QueueEntries) -> str:
    known = entries.subscription_data
    if known is None:
        return "\n" + tables.visible(f"{group} has no subscription: {entries.filter_data or 'no reason'}")
    return "\n" + tables.visible(
        f"{group} subscribes to {known.sub_string} ({known.expression_type or 'TAG'})"
    )


def send_message(
    site: Site,
    topic: Topic,
    body: Annotated[str, text("p", "body", "TEXT", "The body.")],
    keys: Annotated[str | None, text("k", "keys", "KEYS", "Keys, separated by spaces.")] = None,
    tag: Annotated[str | None, text("c", "tags", "TAG", "The tag.")] = None,
    broker_name: Annotated[str | None, text("b", "broker", "NAME", "With -i: send to this broker.")] = None,
    queue_id: Annotated[int | None, count("i", "qid", "With -b: send to this queue.", least=0)] = None,
) -> None:
    """Send a message. `mqproof send` has more options.

    \b
    Example: mqproof admin sendMessage -n 127.0.0.1:9876 -t T -p hello -k order-17
    """
    if (broker_name is None) != (queue_id is None):
        fail("-b and -i must be given together", WRONG_USE)
    try:
        message = new_message(topic, body.encode(), tag=tag, keys=(keys or "").split())
    except MessageError as error:
        fail(str(error), WRONG_USE)

    async def work(admin: Admin) -> None:
        queue: MessageQueue | None = None
        if broker_name is not None and queue_id is not None:
            queue = MessageQueue(topic, broker_name, queue_id)
        outcome = await Producer(admin.session).send(message, queue)
        _say_sent(outcome)

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
    tags: Annotated[Any, _TAGS] = "*",
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
            say(_printed(queue, stored, charset if body else None))

    perform(site, work)


def print_msg_by_queue(
    site: Site,
    topic: Topic,
    broker_name: Annotated[str, text("a", "brokerName", "NAME", "The broker of the queue.")],
    queue_id: QueueId,
    tags: Annotated[Any, _TAGS] = "*",
    begin: Begin = None,
    end: End = None,
    print_msg: Annotated[Any, flag("p", "print", "Whether to print the messages.")] = "false",
    body: Annotated[Any, flag("d", "printBody", "Whether to print the bodies.")] = "false",
    by_tag: Annotated[Any, flag("f", "calculate", "Whether to count the messages by tag.")] = "false",
    charset: Annotated[str, text("c", "charsetName", "NAME", "The character set of the bodies.")] = "UTF-8",
) -> None:
    """Print every message of one queue, one a line (-p true), or count them by tag (-f true).

    \b
    Example: mqproof admin printMsgByQueue -n 127.0.0.1:9876 -t T -a broker-a -i 0 -p true -d true
    """
    require_charset("c", charset)
    if not (print_msg or by_tag):
        fail("give -p true, -f true, or both", WRONG_USE)

    async def work(admin: Admin) -> None:
        queue = MessageQueue(topic, broker_name, queue_id)
        counts: Counter[str] = Counter()
        found = messages.read(admin, topic, only=queue, tags=tags, begin_ms=begin, end_ms=end)
        async for _, stored in found:
            counts[stored.message.properties.get(TAGS, "-")] += 1
            if print_msg:
                say(_printed(queue, stored, charset if body else None))
        if by_tag:
            show(tables.rows(("tag", "#messages"), [(tag, str(n)) for tag, n in sorted(counts.items())]))

    perform(site, work)


def consume_message(
    site: Site,
    topic: Topic,
    broker_name: Annotated[
        str | None, text("b", "brokerName", "NAME", "With -i: read only from this broker.")
    ] = None,
    queue_id: Annotated[int | None, count("i", "queueId", "With -b: read only this queue.", least=0)] = None,
    offset: Annotated[
        int | None, count("o", "offset", "With -b and -i: begin at this offset.", least=0)
    ] = None,
    messages_max: Annotated[
        int | None, count("c", "MessageNumber", "Read at most N messages; all without it.")
    ] = None,
    begin: Annotated[Any, when("s", "beginTimestamp", "Only messages stored from this time on.")] = None,
    end: End = None,
    group: Annotated[
        str, text("g", "consumerGroup", "NAME", "The group that reads.")
    ] = messages.READER_GROUP,
) -> None:
    """Read messages as a member of a group would, and print them, one a line.

    The offsets of the group do not change, and its members receive the messages all the same. The order is
    queue by queue.

    \b
    Example: mqproof admin consumeMessage -n 127.0.0.1:9876 -t T -b broker-a -i 0 -o 5 -c 1
    """
    if (broker_name is None) != (queue_id is None):
        fail("-b and -i must be given together", WRONG_USE)
    if offset is not None and queue_id is None:
        fail("-o needs -b and -i", WRONG_USE)

    async def work(admin: Admin) -> None:
        only = None
        if broker_name is not None and queue_id is not None:
            only = MessageQueue(topic, broker_name, queue_id)
        found = messages.read(
            admin, topic, only=only, begin_ms=begin, end_ms=end, first_offset=offset or 0, group=group
        )
        number = 0
        async with aclosing(found):
            async for queue, stored in found:
                say(_printed(queue, stored, "UTF-8"))
                number += 1
                if number == messages_max:
                    break
        if not number:
            raise ClientError(f"no such message in topic {topic}")

    perform(site, work)


def _printed(queue: MessageQueue, stored: StoredMessage, charset: str | None) -> str:
    line = _line(queue, stored)
    if charset is not None:
        line += "  " + stored.message.body.decode(charset, errors="replace")
    return tables.visible(line)


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
