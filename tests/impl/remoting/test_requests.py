"""Tests the declared limits: every code of a server is in the table, and no field is without a limit."""

import pytest
from msgspec import inspect

from mqproof.fuzz.hostile.field_values import fields_of, leaves, unbounded
from mqproof.impl.broker.processors.all_processors import PROCESSORS as OF_BROKER
from mqproof.impl.namesrv.server import PROCESSORS as OF_NAME_SERVER
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import Header
from mqproof.impl.remoting.requests import BODIES_USED, FORMS, limited, limiting

OF_FILTER_SERVER = {RequestCode.REGISTER_MESSAGE_FILTER_CLASS}
"""The code that only a filter server serves."""

HEADERS = sorted({form.header for form in FORMS.values() if form.header}, key=lambda kind: kind.__name__)
BODIES = sorted(
    {form.body for form in FORMS.values() if form.body not in (None, str, bytes)},
    key=lambda kind: kind.__name__,
)


def test_every_request_code_of_a_server_has_a_form() -> None:
    assert set(FORMS) == set(OF_BROKER) | set(OF_NAME_SERVER) | OF_FILTER_SERVER


def test_every_form_names_a_header_and_a_body_and_gives_the_body_room() -> None:
    for code, form in FORMS.items():
        assert form.header is None or issubclass(form.header, Header), code
        assert form.body is None or not issubclass(form.body, Header), code
        room = form.body_bytes_max
        assert room >= 1 << 20 if form.body else room == 0, f"request {code} has a body of {room} bytes"


@pytest.mark.parametrize("header", HEADERS, ids=lambda kind: kind.__name__)
def test_every_field_of_a_request_header_has_a_limit(header: type) -> None:
    assert [name for name, kind in fields_of(header) if unbounded(kind)] == []


@pytest.mark.parametrize("body", BODIES, ids=lambda kind: kind.__name__)
def test_every_value_in_a_request_body_has_a_limit(body: type) -> None:
    assert [at for at, kind in leaves(inspect.type_info(body)) if unbounded(kind)] == []


def test_a_body_that_is_not_used_is_dropped_and_one_that_is_too_large_is_refused() -> None:
    pull = new_request(RequestCode.PULL_MESSAGE, {"topic": "T"}, b"x" * 100)
    slim = limited(pull)
    assert isinstance(slim, Command)
    assert (slim.body, slim.fields, slim.opaque) == (b"", pull.fields, pull.opaque)
    beat = new_request(RequestCode.HEART_BEAT, {}, b"x" * (1 << 20))
    assert limited(beat) is beat
    assert limited(new_request(RequestCode.HEART_BEAT, {}, b"x" * ((1 << 20) + 1))) == (
        "a body of 1048577 bytes, at most 1048576 allowed"
    )
    assert RequestCode.SEND_MESSAGE in BODIES_USED
    assert RequestCode.PULL_MESSAGE not in BODIES_USED


def test_a_handler_never_sees_a_body_beyond_the_limit() -> None:
    seen: list[bytes] = []

    def handle(request: Command, channel: Channel) -> Reply:
        seen.append(request.body)
        return None

    checked = limiting(handle)
    channel: Channel = None  # type: ignore[assignment]  # not used
    assert checked(new_request(RequestCode.GET_MAX_OFFSET, {}, b"x"), channel) is None
    refused = checked(new_request(RequestCode.UPDATE_BROKER_CONFIG, {}, b"x" * (2 << 20)), channel)
    assert isinstance(refused, Command)
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert seen == [b""]
