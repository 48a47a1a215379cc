"""Tests that hooks see each request and its outcome, and change neither."""

import pytest

from mqproof.impl.client.connection.request_hooks import Hooks, RequestSummary
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import Refused
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.remoting.channel import ConnectError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import Address
from tests.impl.world import World, play


class Log:
    """A hook that keeps what it sees, and then fails."""

    def __init__(self) -> None:
        self.begun: list[RequestSummary] = []
        self.ended: list[tuple[str, str, bool]] = []

    def before(self, request: RequestSummary) -> None:
        self.begun.append(request)
        raise RuntimeError("injected")

    def after(self, request: RequestSummary, outcome: str, seconds: float) -> None:
        self.ended.append((request.name, outcome.split(":")[0], seconds >= 0))
        raise RuntimeError("injected")


def test_hooks_see_every_request_without_its_signature_and_its_outcome() -> None:
    async def scenario(world: World) -> Log:
        log = Log()
        account = Credentials("access-key", "secret-key")
        session = Session([world.namesrv_address], world.runtime, credentials=account, hooks=[log])
        async with session:
            producer = Producer(session)
            await producer.send_or_raise(Message("T", b"body"))
            await producer.send_oneway(Message("T", b"body"))
            await world.stop_broker()
            assert isinstance(await producer.send(Message("T", b"body")), Refused)
        return log

    log = play(scenario)
    assert ("SEND_MESSAGE_V2", "SUCCESS", True) in log.ended
    assert ("SEND_MESSAGE_V2", "SENT", True) in log.ended
    assert ("SEND_MESSAGE_V2", "ConnectError", True) in log.ended
    assert log.ended[0][0] == "GET_ROUTEINFO_BY_TOPIC"
    assert len(log.begun) == len(log.ended)
    sent = next(each for each in log.begun if each.name == "SEND_MESSAGE_V2")
    assert sent.body_bytes == 4
    assert sent.fields["b"] == "T"
    assert "Signature" not in sent.fields


class Second(Log):
    def before(self, request: RequestSummary) -> None:
        self.begun.append(request)

    def after(self, request: RequestSummary, outcome: str, seconds: float) -> None:
        self.ended.append((request.name, outcome, seconds == 0.25))


def test_a_hook_that_fails_is_logged_and_the_next_one_still_runs(caplog: pytest.LogCaptureFixture) -> None:
    hook = Second()
    hooks = Hooks([Log(), hook])
    summary = hooks.before(Address("broker", 10911), new_request(RequestCode.PULL_MESSAGE, {"a": "1"}, b"xy"))
    hooks.after(summary, None, 0.25)
    assert hook.begun == [RequestSummary("broker:10911", "PULL_MESSAGE", {"a": "1"}, 2)]
    assert hook.ended == [("PULL_MESSAGE", "SENT", True)]
    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("ERROR", "a hook failed before PULL_MESSAGE"),
        ("ERROR", "a hook failed after PULL_MESSAGE"),
    ]
    assert all(line.exc_info for line in caplog.records)


def test_a_code_without_a_name_is_shown_as_its_number_and_an_error_with_its_text() -> None:
    hook = Second()
    hooks = Hooks([hook])
    request = new_request(31_999)  # no code of the protocol
    summary = hooks.before(Address("broker", 10911), request)
    hooks.after(summary, request.answer(ResponseCode.NO_PERMISSION), 0.25)
    hooks.after(summary, ConnectError("gone"), 0.25)
    assert hook.ended == [("31999", "NO_PERMISSION", True), ("31999", "ConnectError: gone", True)]


def test_without_a_hook_there_is_nothing_to_call() -> None:
    assert not Hooks()
    assert Hooks([Second()])
