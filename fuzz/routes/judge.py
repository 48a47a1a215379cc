"""Compares the observations of routes and replies with the catalogue; each function raises Finding."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from mqproof.fuzz.target import Finding
from mqproof.impl.client.producing.queue_choice import LEVELS_5
from mqproof.impl.namesrv.route_table import RouteTable
from mqproof.impl.remoting.bodies import PERM_WRITE, TopicRoute

Checked = Counter[str]

_MASTER_ID: Final = 0
_SLACK_S: Final = 0.05
"""Simulated time between the end of an attempt and the event that reports it is at most this."""
LATE_S: Final = 1.0
"""The longest time between the time limit of a request and its end."""


# -- name servers


def tables_agree(server: str, table: RouteTable, topics: Collection[str], checked: Checked) -> None:
    """Check ROUTE-1: each queue entry names a known broker, and each known address is live."""
    live = {(one.key.broker_name, one.key.address) for one in table.living()}
    known = table.cluster_info().broker_addr_table
    checked["TablesAgree"] += bool(known)
    for name, data in known.items():
        for address in data.broker_addrs.values():
            if (name, address) not in live:
                raise Finding("TablesAgree", f"{server} knows {address} of {name}, which is not live")
    for topic in topics:
        route = table.route(topic)
        for queues in route.queue_datas if route else ():
            if queues.broker_name not in known:
                raise Finding("TablesAgree", f"{server}: {topic} has queues at {queues.broker_name}, unknown")


def live_broker_kept(server: str, broker: str, silent_s: float, expiry_s: float, checked: Checked) -> None:
    """Check ROUTE-2: a broker that a name server removes as silent was silent for the expiry time."""
    checked["LiveBrokerKept"] += 1
    if silent_s < expiry_s:
        raise Finding("LiveBrokerKept", f"{server} removed {broker}, silent for {silent_s:.3f} s")


def dead_broker_forgotten(server: str, broker: str, silent_s: float, most_s: float, checked: Checked) -> None:
    """Check ROUTE-3: a name server does not list a broker that was silent for expiry and scan together."""
    checked["DeadBrokerForgotten"] += 1
    if silent_s > most_s:
        raise Finding("DeadBrokerForgotten", f"{server} lists {broker}, silent for {silent_s:.3f} s")


# -- producers


@dataclass(slots=True)
class Attempt:
    """The last attempt of a producer at a broker."""

    ended_s: float
    rest_s: float
    """How long the broker must rest after it."""
    rest_s_max: float
    """How long it may rest, if the attempt counts as a failure."""


def rests(took_s: float, *, is_stored: bool, is_failure: bool) -> tuple[float, float]:
    """Return how long a broker must rest after an attempt, and how long it may rest."""
    failed_s = LEVELS_5.rest_ms(LEVELS_5.failure_ms) / 1000
    took = LEVELS_5.rest_ms(took_s * 1000) / 1000
    if is_failure:
        return failed_s, failed_s
    return (took, took) if is_stored else (0.0, max(took, failed_s))


def writable(route: TopicRoute | None) -> set[str]:
    """Return the brokers of a route that have a master and writable queues."""
    if route is None:
        return set()
    masters = {data.broker_name for data in route.broker_datas if _MASTER_ID in data.broker_addrs}
    return masters & {queues.broker_name for queues in route.queue_datas if queues.perm & PERM_WRITE}


def master_only_writes(broker: str, allowed: Collection[str], checked: Checked) -> None:
    """Check ROUTE-4: a producer sends to writable queues of brokers that have a master, in its route."""
    checked["MasterOnlyWrites"] += 1
    if allowed and broker not in allowed:
        raise Finding("MasterOnlyWrites", f"a send goes to {broker}; {sorted(allowed)} can be written")


def retry_avoids_last_broker(broker: str, last: str, allowed: Collection[str], checked: Checked) -> None:
    """Check ROUTE-5: a retry goes to another broker than the last attempt, if there is one."""
    if set(allowed) - {last}:
        checked["RetryAvoidsLastBroker"] += 1
        if broker == last:
            raise Finding("RetryAvoidsLastBroker", f"a retry goes to {last} again, not to {sorted(allowed)}")


def faulty_broker_rested(
    broker: str, allowed: Collection[str], last: Mapping[str, Attempt], now_s: float, checked: Checked
) -> None:
    """Check ROUTE-6: no producer chooses a broker that must rest while another one certainly need not."""
    resting = {name for name, one in last.items() if one.ended_s + one.rest_s > now_s + _SLACK_S}
    free = {
        name
        for name in allowed
        if name not in last or last[name].ended_s + last[name].rest_s_max < now_s - _SLACK_S
    }
    if resting and free:
        checked["FaultyBrokerRested"] += 1
        if broker in resting:
            raise Finding("FaultyBrokerRested", f"{broker} is chosen while it rests; {sorted(free)} is free")


def eventually_routed(lacking: Mapping[str, Collection[str]], waited_s: float, checked: Checked) -> None:
    """Check ROUTE-7: after the faults end, each client's route has all brokers; `lacking` has the others."""
    checked["EventuallyRouted"] += 1
    for client, brokers in lacking.items():
        if brokers:
            text = f"{waited_s:g} s after the last fault the route of {client} lacks {sorted(brokers)}"
            raise Finding("EventuallyRouted", text)


# -- requests


def reply_to_its_requester(request: str, reply: str, checked: Checked) -> None:
    """Check REPLY-1: a request ends with the reply that a consumer made of it."""
    checked["ReplyToItsRequester"] += 1
    if reply != f"re:{request}":
        raise Finding("ReplyToItsRequester", f"{request} ended with the reply {reply}")


def pushed_to_its_requester(requester: str, client: str, checked: Checked) -> None:
    """Check REPLY-1: a reply is pushed only to the client that sent the request."""
    checked["ReplyToItsRequester"] += 1
    if requester != client:
        raise Finding("ReplyToItsRequester", f"a reply for {requester} was pushed to {client}")


def request_ends_once(request: str, took_s: float, limit_s: float, checked: Checked) -> None:
    """Check REPLY-2: no request ends with a reply that came after its time limit."""
    checked["RequestEndsOnce"] += 1
    if took_s > limit_s + LATE_S:
        raise Finding(
            "RequestEndsOnce", f"{request} ended with a reply after {took_s:.3f} s, limit {limit_s}"
        )


def reply_confirmed(correlation_id: str, received: Collection[str], checked: Checked) -> None:
    """Check REPLY-3: the sender of a reply receives SUCCESS only if a client received the reply."""
    checked["ReplyConfirmed"] += 1
    if correlation_id not in received:
        raise Finding("ReplyConfirmed", f"a reply to {correlation_id} is confirmed; no client received it")


def request_ends(open_s: Mapping[str, float], limit_s: float, checked: Checked) -> None:
    """Check REPLY-4: no request is open for longer than its time limit."""
    checked["RequestEnds"] += 1
    for request, seconds in open_s.items():
        if seconds > limit_s + LATE_S:
            raise Finding("RequestEnds", f"{request} is open after {seconds:.3f} s, limit {limit_s}")
