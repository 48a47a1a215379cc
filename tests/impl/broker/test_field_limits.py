"""Sends values beyond each declared limit to a broker and a name server: every one is refused by name.

Goal: no field of any request can hold a value that the servers did not expect. Method: for each request code
and each field of its header and body, a request that is valid except for that value. The answer names the
field, the log has no error, and the server goes on.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import inspect

from mqproof.fuzz.hostile.field_values import beyond, fields_of, good, leaves, replaced
from mqproof.impl.namesrv.server import PROCESSORS as OF_NAME_SERVER
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, ResponseCode, request_name
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.requests import FORMS, Form
from tests.impl.world import World, play

V2 = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2)
OF_FILTER_SERVER = RequestCode.REGISTER_MESSAGE_FILTER_CLASS
"""Neither a broker nor a name server serves it; tests/impl/filter_server/test_server.py has its limits."""
CODES = pytest.mark.parametrize(
    "code", [code for code in FORMS if code != OF_FILTER_SERVER], ids=request_name
)
JSON_CODES = [code for code, form in FORMS.items() if form.body not in (None, str, bytes)]
NESTED = (
    *(b"[" * 100_000, b'{"a":' * 100_000, b"[" * 500 + b"]" * 500),
    *(b"{{{}:1}:1}", b"\xff", b"{"),
)

Ask = Callable[[dict[str, str], bytes], Awaitable[Command]]


def text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def good_fields(form: Form) -> dict[str, str]:
    if form.header is None:
        return {}
    return {name: text(good(kind, name)) for name, kind in fields_of(form.header)}


def sent_fields(code: int, fields: dict[str, str]) -> dict[str, str]:
    """Return the fields with the names that they have on the wire."""
    if code not in V2:
        return fields
    return {headers._LETTERS[name]: value for name, value in fields.items()}


def good_body(form: Form) -> bytes:
    if form.body in (None, str, bytes):
        return b"x" if form.body is bytes else b""
    return json.dumps(good(inspect.type_info(form.body))).encode()


def serving(code: int, scenario: Callable[[Ask], Awaitable[None]], caplog: pytest.LogCaptureFixture) -> None:
    """Run a scenario with the server that answers the code; afterwards the server still serves."""

    async def main(world: World) -> None:
        is_names = code in OF_NAME_SERVER
        address = world.namesrv_address if is_names else world.broker_address

        async def ask(fields: dict[str, str], body: bytes) -> Command:
            return await world.session.remoting.invoke(address, new_request(code, fields, body), 30.0)

        await scenario(ask)
        alive = RequestCode.GET_BROKER_CLUSTER_INFO if is_names else RequestCode.GET_BROKER_CONFIG
        answer = await world.session.remoting.invoke(address, new_request(alive), 30.0)
        assert answer.code == ResponseCode.SUCCESS

    with caplog.at_level(logging.ERROR):
        play(main)
    assert caplog.messages == []


@CODES
def test_a_header_field_beyond_its_limit_is_refused_by_name(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    form = FORMS[code]
    if form.header is None:
        return

    async def scenario(ask: Ask) -> None:
        assert form.header is not None
        valid, body = good_fields(form), good_body(form)
        headers.read(form.header, valid)
        for name, kind in fields_of(form.header):
            for value in beyond(kind):
                answer = await ask(sent_fields(code, {**valid, name: text(value)}), body)
                assert answer.code == ResponseCode.SYSTEM_ERROR, (name, value)
                assert f"`$.{name}`" in (answer.remark or ""), (name, answer.remark)

    serving(code, scenario, caplog)


@pytest.mark.parametrize("code", JSON_CODES, ids=request_name)
def test_a_body_value_beyond_its_limit_is_refused_by_name(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    form = FORMS[code]
    kind = inspect.type_info(form.body)

    async def scenario(ask: Ask) -> None:
        valid = good(kind)
        fields = {**good_fields(form), "bodyCrc32": "0"} if form.header else {}
        for at, part in leaves(kind):
            for value in beyond(part):
                answer = await ask(fields, json.dumps(replaced(valid, at, value)).encode())
                remark = answer.remark or ""
                assert answer.code == ResponseCode.SYSTEM_ERROR, (at, str(value)[:80])
                assert remark.startswith(f"{form.body.__name__}: ") or "a body of" in remark, (at, remark)
        for nested in (
            b"[" * 100_000,
            b'{"a":' * 100_000,
            b"[" * 500 + b"]" * 500,
            b"{{{}:1}:1}",
            b"\xff",
            b"{",
        ):
            answer = await ask(fields, nested)
            assert answer.code == ResponseCode.SYSTEM_ERROR

    serving(code, scenario, caplog)


@CODES
def test_a_body_longer_than_its_limit_is_refused_or_dropped(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    form = FORMS[code]

    async def scenario(ask: Ask) -> None:
        size = min(form.body_bytes_max + 1, 16_000_000)
        answer = await ask(sent_fields(code, good_fields(form)), b"x" * size)
        if form.body is not None:
            assert answer.code != ResponseCode.SUCCESS

    serving(code, scenario, caplog)


def test_a_preserved_member_may_not_be_nested_deeply(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(ask: Ask) -> None:
        for depth, code in ((15, ResponseCode.SUCCESS), (17, ResponseCode.SYSTEM_ERROR), (500, 1)):
            value: Any = 1
            for _ in range(depth):
                value = {"a": value}
            body = json.dumps({"groupName": "G", "groupRetryPolicy": {"a": value}}).encode()
            assert (await ask({}, body)).code == code, depth

    serving(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, scenario, caplog)


@pytest.mark.parametrize("name", ["consumeType", "messageModel", "consumeFromWhere"])
@pytest.mark.parametrize("value", ["SOMETIMES", "", 99, -1])
def test_an_unknown_constant_in_a_heartbeat_is_refused(
    name: str, value: str | int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(ask: Ask) -> None:
        body = json.dumps({"clientID": "c", "consumerDataSet": [{"groupName": "G", name: value}]})
        assert (await ask({}, body.encode())).code == ResponseCode.SYSTEM_ERROR

    serving(RequestCode.HEART_BEAT, scenario, caplog)
