"""Mutants that the inspections of headers, bodies and connections detect."""

from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.mutants.mutant import by_name, nothing, unexplained
from mqproof.impl.namesrv.kv_config import KvConfig
from mqproof.impl.namesrv.route_table import RouteTable
from mqproof.impl.remoting import command, headers, java_json, request_handler
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.server import RemotingServer

_REMOTING: Final = "mqproof.impl.remoting"
_read, _read_body, _handler = headers.read, java_json.read, request_handler.handler
_accept, _expire = RemotingServer._accept, RouteTable.expire


def _length_in_characters(name: str, value: str) -> bytes:
    key, content = name.encode(), value.encode()
    size = command._INT32.pack(len(value))
    return b"".join((command._INT16.pack(len(key)), key, size, content))


def _texts_cut(kind: Any, fields: dict[str, str]) -> Any:
    return _read(kind, {name: value[:1024] for name, value in fields.items()})


def _one_month(_time_ms: int) -> range:
    return range(1 << 62)


async def _put_beside_the_lock(kv: KvConfig, namespace: str, key: str, value: str) -> None:
    space = {**kv._spaces.get(namespace, {}), key: value}
    async with kv._changing:
        await kv._become({**kv._spaces, namespace: space})


def _any_status(answer: bytes) -> str:
    return answer.partition(b"\r\n\r\n")[2].decode()


def _without_codes(processors: Mapping[int, Any]) -> Any:
    known = _handler(processors)

    def handle(request: Any, channel: Any) -> Any:
        if request.code in processors:
            return known(request, channel)
        return request.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark="not supported")

    return handle


def _from_its_brace(kind: Any, body: bytes) -> Any:
    return _read_body(kind, body[max(body.find(b"{"), 0) :])


def _left_open(self: Any, connection: Any) -> Any:
    if self.budgets.connections.refusal(connection) is not None:
        return Channel(connection, lambda _request, _channel: None, self._limits)
    return _accept(self, connection)


def _unsigned(_client: object, request: Any) -> Any:
    return request


def _early(table: Any, now_ms: int) -> Any:
    return _expire(table, now_ms + 150)


INSPECTIONS: Final[Mapping[str, str]] = {
    "binary-length-in-characters": "texts in headers",
    "pair-put-beside-the-lock": "overlaps",
    "answers-of-any-status": "address servers",
    "time-since-1970-in-keys": "identifiers",
    "unread-answers-without-a-limit": "shares of bytes",
    "no-turn-for-others": "usual shares of bytes",
    "long-texts-cut": "limits of values",
    "nested-without-a-limit": "limits of lists",
    "unknown-requests-without-their-code": "code numbers",
    "text-before-a-body-ignored": "wrong characters",
    "refused-connection-left-open": "servers of requests",
    "requests-without-signature": "clients of scripted servers",
    "expired-early": "routing tables",
}
"""The inspection that detects each mutant."""

MUTANTS: Final = by_name(
    unexplained(
        "binary-length-in-characters", "a binary header has the length of a value in characters",
        f"{_REMOTING}.command:_encode_field", _length_in_characters,
    ),
    unexplained(
        "pair-put-beside-the-lock", "a key-value pair is lost if another one is put at the same time",
        "mqproof.impl.namesrv.kv_config:KvConfig.put", _put_beside_the_lock,
    ),
    unexplained(
        "answers-of-any-status", "an answer of an address server counts whatever its status is",
        f"{_REMOTING}.address_server:_text", _any_status,
    ),
    unexplained(
        "time-since-1970-in-keys", "unique keys have the time since 1970 instead of that of the month",
        f"{_REMOTING}.message:month_of", _one_month,
    ),
    unexplained(
        "unread-answers-without-a-limit", "peers may leave any number of bytes of answers unread",
        f"{_REMOTING}.channel:Channel._too_much_unread", nothing,
    ),
    unexplained(
        "no-turn-for-others", "all frames of a connection are handled before those of others",
        f"{_REMOTING}.channel:Channel._count_frame", nothing,
    ),
    unexplained(
        "long-texts-cut", "texts of headers are cut at 1,024 characters", f"{_REMOTING}.headers:read",
        _texts_cut,
    ),
    unexplained(
        "nested-without-a-limit", "a member that is only preserved may be nested to any depth",
        f"{_REMOTING}.bodies:_check_depth", nothing,
    ),
    unexplained(
        "unknown-requests-without-their-code", "the refusal of an unknown request does not name its code",
        "mqproof.impl.namesrv.server:handler", _without_codes,
    ),
    unexplained(
        "text-before-a-body-ignored", "a body may have any text before its JSON",
        f"{_REMOTING}.java_json:read", _from_its_brace,
    ),
    unexplained(
        "refused-connection-left-open", "a connection beyond the limit stays open",
        f"{_REMOTING}.server:RemotingServer._accept", _left_open,
    ),
    unexplained(
        "requests-without-signature", "a client with an account does not sign its requests",
        f"{_REMOTING}.client:RemotingClient._signed", _unsigned,
    ),
    unexplained(
        "expired-early", "a name server removes a broker 150 ms before its time is over",
        "mqproof.impl.namesrv.route_table:RouteTable.expire", _early,
    ),
)  # fmt: skip
"""The mutants by name."""
