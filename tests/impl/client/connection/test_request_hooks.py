"""Tests that hooks see each request and its outcome, and change neither."""

from mqproof.impl.client.connection.request_hooks import RequestSummary
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import Refused
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.signing import Credentials
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
