"""A broker of your own, held to the specification: replace the toy below, method by method.

    mqproof conform template my_broker.py                          # this file
    mqproof conform check-adapter python:my_broker:MyBroker        # is the adapter itself right?
    mqproof conform --target python:my_broker:MyBroker             # is the broker?

The suite makes an object of this class for each example, without arguments, and calls `open` first and
`close` last; in between it calls one method at a time. A method returns when its effect is known. Whatever
keeps you from driving your broker raises TargetError. A broker that is wrong is no error: return what it
said.

This toy keeps its messages in memory and passes; it can be killed, and forgets nothing, for its "disk" is a
list that lives as long as the object.
"""

from mqproof.conformance.suites.flush.target import (
    Capability,
    Outcome,
    Pulled,
    PulledMessage,
    PullStatus,
    Sent,
    Setup,
    WireOnly,
)


class MyBroker(WireOnly):
    """WireOnly has the methods of capabilities that are not declared; they are never called."""

    name = "python:my_broker:MyBroker"
    # Start with frozenset() and add what your broker can be made to do; conformance/suites/flush/target.py
    # says what each capability requires. What is left out is reported as not tested.
    capabilities = frozenset({Capability.COMMIT_OFFSET, Capability.KILL})

    def open(self, setup: Setup) -> None:
        """A broker on which the topic has no message and the group no offset: start one, or use a new topic.

        `setup.flush_mode` is a wish, unless you declare Capability.FLUSH_MODE.
        """
        self.queues: list[list[tuple[str, bytes]]] = [[] for _ in range(setup.queues)]
        self.committed = [0] * setup.queues

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> Sent:  # noqa: ARG002
        """Send once, without retries. Not sure whether it was stored? Outcome.INDETERMINATE, never FAILED."""
        self.queues[queue_id].append((msg_id, body))
        return Sent(Outcome.OK, "SEND_OK", len(self.queues[queue_id]) - 1)

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> Pulled:
        """Pull once. Offsets are dense: 0, 1, 2, ...; max_offset is one more than the last."""
        queue = self.queues[queue_id]
        if offset > len(queue):
            return Pulled(PullStatus.OFFSET_MOVED, (), len(queue), 0, len(queue))
        messages = tuple(
            PulledMessage(msg_id, body, topic, queue_id, number)
            for number, (msg_id, body) in enumerate(queue[offset : offset + max_count], start=offset)
        )
        status = PullStatus.FOUND if messages else PullStatus.NO_NEW
        return Pulled(status, messages, offset + len(messages), 0, len(queue))

    def min_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return 0

    def max_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return len(self.queues[queue_id])

    # Capability.COMMIT_OFFSET

    def commit_offset(self, topic: str, queue_id: int, offset: int) -> bool:  # noqa: ARG002
        self.committed[queue_id] = offset
        return True

    def query_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return self.committed[queue_id]

    # Capability.KILL: SIGKILL to the process, and a start on what it left

    def kill(self) -> None:
        pass

    def restart(self) -> None:
        """Returns when the broker serves again; raises RestartFailedError when it does not come up."""

    def close(self) -> None:
        """Works in any state, also twice."""
