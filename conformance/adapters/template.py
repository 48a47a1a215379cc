"""An adapter for your own broker: replace the toy broker below, method by method.

    mqproof conform template my_broker.py                          # this file
    mqproof conform check-adapter python:my_broker:MyBroker        # is the adapter itself right?
    mqproof conform --target python:my_broker:MyBroker             # is the broker?

The suite creates an object of this class for each example, without arguments. It calls `open` first and
`close` last; in between it calls one method at a time. A method returns when its effect is known. Raise
TargetError if something prevents you from driving your broker. A wrong answer of the broker is not an error:
return the answer.

This toy keeps its messages in memory and passes the suite. It can be killed without losing anything, because
its "disk" is a list that lives as long as the object.
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
    # Start with frozenset() and add what your broker offers; conformance/suites/flush/target.py lists what
    # each capability requires. Missing capabilities are reported as not tested.
    capabilities = frozenset({Capability.COMMIT_OFFSET, Capability.KILL})

    def open(self, setup: Setup) -> None:
        """Start a broker, or use a new topic: the topic has no message and the group no offset.

        `setup.flush_mode` is not binding, unless you declare Capability.FLUSH_MODE.
        """
        self.queues: list[list[tuple[str, bytes]]] = [[] for _ in range(setup.queues)]
        self.committed = [0] * setup.queues

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> Sent:  # noqa: ARG002
        """Send once, without retries.

        If it is unknown whether it was stored, return Outcome.INDETERMINATE, not FAILED.
        """
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

    # Capability.KILL: SIGKILL to the process, and a start on the remaining data

    def kill(self) -> None:
        pass

    def restart(self) -> None:
        """Return when the broker serves again; raise RestartFailedError if it does not start."""

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
