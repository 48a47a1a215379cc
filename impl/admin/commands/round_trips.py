"""Commands that measure how long sends take. They store messages."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from mqproof.impl.admin import round_trips, tables, times
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.options import Topic, count, flag, text
from mqproof.impl.admin.round_trips import RoundTrip, average_ms
from mqproof.impl.admin.run import Site, perform, say, show
from mqproof.impl.client.model import ClientError, NoRouteError, Refused, Sent

_Size = Annotated[int, count("s", "size", "The size of a body in bytes.")]
_Amount = Annotated[int, count("a", "amount", "The number of messages.")]


def check_msg_send_rt(site: Site, topic: Topic, amount: _Amount = 100, size_bytes: _Size = 128) -> None:
    """Measure how long sends to the queues of a topic take.

    The messages go to the queues in turn. The average leaves out the first one, which opens the connection.

    \b
    Example: mqproof admin checkMsgSendRT -n 127.0.0.1:9876 -t T -a 20
    """

    async def work(admin: Admin) -> None:
        found = [each async for each in round_trips.of_topic(admin, topic, amount, size_bytes)]
        lines = [
            (each.queue.broker_name, str(each.queue.queue_id), _status(each), f"{each.spent_ms:.1f}")
            for each in found
        ]
        show(tables.rows(("broker", "#queue", "result", "#ms"), lines))
        say(f"\n{_average(found)} ms on average")
        _require_stored(found)

    perform(site, work)


def send_msg_status(
    site: Site,
    broker_name: Annotated[str, text("b", "brokerName", "NAME", "The broker.")],
    amount: Annotated[int, count("c", "count", "The number of messages.")] = 50,
    size_bytes: Annotated[int, count("s", "messageSize", "The size of a body in bytes.")] = 128,
) -> None:
    """Send messages to a broker, in its topic of its own name, and show the result of each.

    \b
    Example: mqproof admin sendMsgStatus -n 127.0.0.1:9876 -b broker-a -c 5
    """

    async def work(admin: Admin) -> None:
        found = []
        async for each in round_trips.of_broker(admin, broker_name, amount, size_bytes):
            found.append(each)
            place = f" offset {each.outcome.queue_offset}" if isinstance(each.outcome, Sent) else ""
            say(f"{_status(each)} {each.outcome.message_id} {each.queue}{place} {each.spent_ms:.1f} ms")
        _require_stored(found)

    perform(site, work)


def cluster_rt(
    site: Site,
    amount: _Amount = 100,
    cluster: Annotated[str | None, text("c", "cluster", "NAME", "Measure only this cluster.")] = None,
    interval_s: Annotated[int, count("i", "interval", "Repeat every N seconds.")] = 10,
    room: Annotated[
        str, text("m", "machineRoom", "NAME", "With -p true: the place in each line.")
    ] = "noname",
    as_log: Annotated[Any, flag("p", "printLog", "Whether to print lines for a log.")] = "false",
    size_bytes: _Size = 128,
) -> None:
    """Measure how long sends to each broker take, again and again until interrupted.

    The messages go to the broker's topic of its own name. With -p true, a line has the time, the place, the
    cluster, the broker and the average in ms.

    \b
    Example: mqproof admin clusterRT -n 127.0.0.1:9876 -a 10 -i 60 -p true -m room-1
    """

    async def work(admin: Admin) -> None:
        while True:
            lines = []
            for of, broker_name in await _brokers(admin, cluster):
                sent = round_trips.of_broker(admin, broker_name, amount, size_bytes)
                try:
                    found = [each async for each in sent]
                except NoRouteError:  # the broker is gone
                    found = []
                stored = sum(isinstance(each.outcome, Sent) for each in found)
                if as_log:
                    now = times.show(times.now_ms()).partition(".")[0]
                    say(tables.visible(f"{now}|{room}|{of}|{broker_name}|{_average(found)}"))
                lines.append((of, broker_name, _average(found), str(stored), str(amount - stored)))
            if not as_log:
                show(tables.rows(("cluster", "broker", "#ms", "#stored", "#failed"), lines))
            await asyncio.sleep(interval_s)

    perform(site, work)


async def _brokers(admin: Admin, cluster: str | None) -> list[tuple[str, str]]:
    """Return each cluster with each of its brokers, sorted. Raises ClientError when there are none."""
    clusters = (await admin.cluster_info()).cluster_addr_table
    found = sorted(
        (name, broker) for name, brokers in clusters.items() if cluster in (None, name) for broker in brokers
    )
    if not found:
        raise ClientError("the name server knows no broker" + (f" of {cluster}" if cluster else ""))
    return found


def _status(each: RoundTrip) -> str:
    outcome = each.outcome
    if isinstance(outcome, Sent):
        return outcome.status
    status = outcome.status if isinstance(outcome, Refused) else "UNKNOWN"
    return tables.visible(f"{status}: {outcome.remark}")


def _average(found: Sequence[RoundTrip]) -> str:
    average = average_ms(found)
    return "-" if average is None else f"{average:.1f}"


def _require_stored(found: Sequence[RoundTrip]) -> None:
    failed = sum(not isinstance(each.outcome, Sent) for each in found)
    if failed:
        raise ClientError(f"{failed} of {len(found)} messages are not known to be stored")
