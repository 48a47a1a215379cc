"""The causes that a diagnosis can name. docs/how-to/diagnose.md lists them; a test compares the two."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """What became of the message, for one group or for all."""

    DELIVERED = "delivered"
    DELAYED = "delayed"
    NOT_DUE = "not yet due"
    FILTERED = "filtered"
    SKIPPED = "skipped"
    DEAD_LETTERED = "dead-lettered"
    WITHDRAWN = "withdrawn"
    NEVER_STORED = "never stored"
    LOST = "lost"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cause:
    """One possible answer."""

    name: str
    state: State
    needs_action: bool
    """Whether the message does not arrive unless a person does something."""
    meaning: str
    next_step: str

    @property
    def exit_code(self) -> int:
        """0 if the message takes its course, 1 if it does not, 3 if the cause is unknown."""
        if self.state is State.UNKNOWN:
            return 3
        return 1 if self.needs_action else 0


def _cause(name: str, state: State, meaning: str, next_step: str, *, action: bool = True) -> Cause:
    return Cause(name, state, action, meaning, next_step)


CONSUMED: Final = _cause(
    "consumed", State.DELIVERED, "The group has consumed the message.",
    "Look in the application: the listener returned success.", action=False,
)  # fmt: skip
CAUGHT_UP: Final = _cause(
    "caught_up", State.DELIVERED, "The group has consumed all messages of the topic.",
    "Nothing to do here. For one message, run mqproof diagnose MSG_ID.", action=False,
)  # fmt: skip
IN_CONSUMPTION: Final = _cause(
    "in_consumption", State.DELAYED, "A member has received the message; its listener has not returned.",
    "Wait. If it takes too long, look at the threads of that member.", action=False,
)  # fmt: skip
LAGGING: Final = _cause(
    "lagging", State.DELAYED, "The message is in the queue, and the group has not come to it yet.",
    "Wait, or add members; watch mqproof admin consumerProgress.", action=False,
)  # fmt: skip
WAITING_FOR_RETRY: Final = _cause(
    "waiting_for_retry", State.DELAYED, "The consumption failed; the message will be delivered again.",
    "Look for the error of the listener in the application's log.", action=False,
)  # fmt: skip
CONSUMER_STUCK: Final = _cause(
    "consumer_stuck", State.DELAYED, "A member owns the queue and makes no progress.",
    "Look at the threads of that member (mqproof admin consumerStatus), then restart it.",
)  # fmt: skip
NO_MEMBERS: Final = _cause(
    "no_members", State.DELAYED, "No member of the group is connected.",
    "Start a consumer of the group, and check its name servers and group name.",
)  # fmt: skip
NOT_SUBSCRIBED: Final = _cause(
    "not_subscribed", State.DELAYED, "The group has members, and none of them subscribes to the topic.",
    "Let a member subscribe to the topic. Members of one group must have the same subscriptions.",
)  # fmt: skip
QUEUE_WITHOUT_OWNER: Final = _cause(
    "queue_without_owner", State.DELAYED, "No member of the group reads the queue.",
    "Check that all members have the same strategy, instance names and subscriptions; restart them.",
)  # fmt: skip
GROUP_DISABLED: Final = _cause(
    "group_disabled", State.DELAYED, "The group's settings at the broker do not allow it to consume.",
    "mqproof admin updateSubGroup -g GROUP -s true",
)  # fmt: skip
TOPIC_NOT_READABLE: Final = _cause(
    "topic_not_readable", State.DELAYED, "The topic has no permission to read.",
    "mqproof admin updateTopicPerm -t TOPIC -p 6",
)  # fmt: skip
OVERDUE: Final = _cause(
    "overdue", State.DELAYED, "The message waits for a time that is over.",
    "Look in the broker's log for errors of delayed delivery; check that the broker is a master.",
)  # fmt: skip
BROKER_UNREACHABLE: Final = _cause(
    "broker_unreachable", State.DELAYED, "The broker that stored the message does not answer.",
    "Start the broker, or repair the network; then diagnose again.",
)  # fmt: skip
WAITING_FOR_ITS_TIME: Final = _cause(
    "waiting_for_its_time", State.NOT_DUE, "The producer asked for a later delivery.",
    "Wait until that time.", action=False,
)  # fmt: skip
TRANSACTION_OPEN: Final = _cause(
    "transaction_open", State.NOT_DUE, "The message is part of a transaction that has not ended.",
    "Wait for the check of the transaction; check that its producer group is connected.", action=False,
)  # fmt: skip
FILTERED: Final = _cause(
    "filtered_by_subscription", State.FILTERED, "The group's subscription does not select the message.",
    "Change the subscription if the group needs such messages.", action=False,
)  # fmt: skip
SUBSCRIPTIONS_DIFFER: Final = _cause(
    "subscriptions_differ", State.FILTERED,
    "Members of the group have different subscriptions, so each drops what others select.",
    "Give all members of the group the same subscriptions, or use several groups.",
)  # fmt: skip
SKIPPED_BY_RESET: Final = _cause(
    "skipped_by_reset", State.SKIPPED, "An administrator moved the group's offset beyond the message.",
    "Reset the group back, with mqproof admin resetOffsetByTime, if it needs the message.",
)  # fmt: skip
SKIPPED_BEFORE_GROUP: Final = _cause(
    "skipped_before_group", State.SKIPPED, "The message was stored before the group began to consume.",
    "Start the group with CONSUME_FROM_FIRST_OFFSET, or reset it back.",
)  # fmt: skip
SKIPPED_BY_COMMIT: Final = _cause(
    "skipped_by_commit", State.SKIPPED, "The group committed an offset beyond a message it did not receive.",
    "Find the client that committed, run mqproof audit on the logs, and reset the group back.",
)  # fmt: skip
DEAD_LETTERED: Final = _cause(
    "dead_lettered", State.DEAD_LETTERED, "The group failed too often; the message is a dead letter.",
    "Repair the listener, then send the message again from the %DLQ% topic.",
)  # fmt: skip
ROLLED_BACK: Final = _cause(
    "rolled_back", State.WITHDRAWN, "The producer rolled the transaction back.",
    "Nothing to do: no consumer may see it.", action=False,
)  # fmt: skip
TRANSACTION_DISCARDED: Final = _cause(
    "transaction_discarded", State.WITHDRAWN, "The transaction was checked too often without an end.",
    "Find out why the producer gave no answer; RESUME_CHECK_HALF_MESSAGE checks it again.",
)  # fmt: skip
RECALLED: Final = _cause(
    "recalled", State.WITHDRAWN, "The producer recalled the message before its time.",
    "Nothing to do: it is not delivered.", action=False,
)  # fmt: skip
TOPIC_DELETED: Final = _cause(
    "topic_deleted", State.WITHDRAWN, "An administrator deleted the topic with its messages.",
    "Ask the administrator; the evidence has the address and account.",
)  # fmt: skip
TOPIC_MISSING: Final = _cause(
    "topic_missing", State.NEVER_STORED, "No broker has the topic.",
    "Check the name, and the name servers of the producer.",
)  # fmt: skip
SEND_REFUSED: Final = _cause(
    "send_refused", State.NEVER_STORED, "The broker refused the message.",
    "Remove the reason for the refusal, and send the message again.",
)  # fmt: skip
SEND_NOT_CONFIRMED: Final = _cause(
    "send_not_confirmed", State.NEVER_STORED, "No send was confirmed, and no broker has the message.",
    "Send the message again. Let the producer repeat sends that are not confirmed.",
)  # fmt: skip
LOST_FROM_STORE: Final = _cause(
    "lost_from_store", State.LOST, "The broker confirmed the message, and no longer has it.",
    "Look for crashes; send again. SYNC_FLUSH and SYNC_MASTER keep confirmed messages.",
)  # fmt: skip
DELETED_BEFORE_CONSUMPTION: Final = _cause(
    "deleted_before_consumption", State.LOST,
    "The broker deleted the message, as too old, before the group consumed it.",
    "Add members, or keep messages longer (fileReservedTime).",
)  # fmt: skip
PASSED: Final = _cause(
    "passed", State.UNKNOWN,
    "The group's offset is beyond the message; whether it was consumed or skipped is not recorded.",
    "Give the consumers' event logs (--log), or enable message trace.",
)  # fmt: skip
NOT_FOUND: Final = _cause(
    "not_found", State.UNKNOWN, "No source has the message: never stored, lost, or deleted as too old.",
    "Check the id; give the producer's event log (--log).",
)  # fmt: skip
INCOMPLETE: Final = _cause(
    "incomplete", State.UNKNOWN, "A part of the evidence could not be read.",
    "Make the part that the evidence names available, and diagnose again.",
)  # fmt: skip
NO_GROUP: Final = _cause(
    "no_group", State.UNKNOWN, "The message is stored; no consumer group of the topic is known.",
    "Name the group with --group.",
)  # fmt: skip
BROADCAST: Final = _cause(
    "broadcast", State.UNKNOWN, "The group consumes by broadcast; each member keeps its own offsets.",
    "Give the members' event logs (--log).",
)  # fmt: skip

CAUSES: Final = {
    each.name: each
    for each in (
        CONSUMED, CAUGHT_UP, IN_CONSUMPTION, LAGGING, WAITING_FOR_RETRY, CONSUMER_STUCK, NO_MEMBERS,
        NOT_SUBSCRIBED, QUEUE_WITHOUT_OWNER, GROUP_DISABLED, TOPIC_NOT_READABLE, OVERDUE, BROKER_UNREACHABLE,
        WAITING_FOR_ITS_TIME, TRANSACTION_OPEN, FILTERED, SUBSCRIPTIONS_DIFFER, SKIPPED_BY_RESET,
        SKIPPED_BEFORE_GROUP, SKIPPED_BY_COMMIT, DEAD_LETTERED, ROLLED_BACK, TRANSACTION_DISCARDED, RECALLED,
        TOPIC_DELETED, TOPIC_MISSING, SEND_REFUSED, SEND_NOT_CONFIRMED, LOST_FROM_STORE,
        DELETED_BEFORE_CONSUMPTION, PASSED, NOT_FOUND, INCOMPLETE, NO_GROUP, BROADCAST,
    )
}  # fmt: skip
"""All causes by name, in the order of the documentation."""
