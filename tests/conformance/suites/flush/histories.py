"""Short functions that build a client's observations."""

from mqproof.conformance.suites.flush.steps import Down as Ended
from mqproof.conformance.suites.flush.steps import End, History, Operation, Pull, Send
from mqproof.conformance.suites.flush.target import Outcome, Pulled, PulledMessage, PullStatus, Sent, Setup
from mqproof.reference.flush import ASYNC_FLUSH, SYNC_FLUSH

SYNC = Setup(SYNC_FLUSH)
ASYNC = Setup(ASYNC_FLUSH)
KILLED, OS_CRASHED, STOPPED = Ended(End.KILL), Ended(End.OS_CRASH), Ended(End.SHUTDOWN)


def seen(setup: Setup, *operations: Operation) -> History:
    return History(setup, operations, is_simulated=True)


def body(msg_id: str) -> bytes:
    return f"body of {msg_id}".encode()


def stored(msg_id: str, offset: int, status: str = "SEND_OK", queue: int = 0) -> Send:
    return Send(queue, msg_id, body(msg_id), Sent(Outcome.OK, status, offset))


def refused(msg_id: str) -> Send:
    return Send(0, msg_id, body(msg_id), Sent(Outcome.FAILED, "SYSTEM_BUSY"))


def abandoned(msg_id: str, queue: int = 0) -> Send:
    return Send(queue, msg_id, body(msg_id), Sent(Outcome.INDETERMINATE, "abandoned"), abandoned=True)


def message(msg_id: str, offset: int, queue: int = 0, topic: str = "conform") -> PulledMessage:
    return PulledMessage(msg_id, body(msg_id), topic, queue, offset)


def found(offset: int, *msg_ids: str, end: int | None = None, peek: bool = True) -> Pull:
    """Return a pull at the offset that returns these messages, one by one."""
    messages = tuple(message(msg_id, offset + n) for n, msg_id in enumerate(msg_ids))
    after = offset + len(messages)
    return Pull(
        0, offset, 32, Pulled(PullStatus.FOUND, messages, after, 0, after if end is None else end), peek
    )


def nothing(offset: int, end: int | None = None) -> Pull:
    end = offset if end is None else end
    return Pull(0, offset, 32, Pulled(PullStatus.NO_NEW, (), offset, 0, end), peek=True)
