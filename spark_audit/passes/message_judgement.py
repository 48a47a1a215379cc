"""The judgement of a message by its numeric aggregates: is it clean, or does it need an exact check?"""

from typing import Final

from mqproof.spark_audit.passes.message_columns import COUNTS, FIRST, NUMBERED

_TALLIES: Final = {
    "messages": "true",
    "messages_sent": "sends > 0",
    "acked": "acked > 0",
    "soft_acked": "soft_acked > 0",
    "unknown_outcome": "unknown > 0 AND acked + soft_acked = 0",
    "acked_and_delivered": "acked > 0 AND deliveries > 0",
    "acked_sync_at_risk": "acked > 0 AND sync_at_risk > 0",
    "messages_delivered": "deliveries > 0",
    "acked_cut": "acked > 0 AND cut > 0",
    "sends_again": "sends > 1",
}
"""Conditions on messages; the tally of each is the number of messages that meet it."""

TALLIED: Final = tuple(_TALLIES)

_IS_CLEAN: Final = """
    cut = 0
    -- A delivery without a send, or with an unknown outcome, is judged by NoPhantom.
    AND (deliveries = 0 OR (sends > 0 AND (acked + soft_acked > 0 OR unknown = 0)))
    AND (
        (deliveries = expected_count AND delivered_xor = expected_xor)
        OR (acked + soft_acked = 0 AND deliveries = 0)
    )"""

_IS_RETURNED: Final = "NOT clean OR sampled OR sends > 1 OR (acked = 0 AND deliveries = 0)"
"""Condition for the messages whose sums are returned."""


def judgement(sampled: str, *, return_all: bool, source: str = "log", readers: str = "readers") -> str:
    """Return the query, in DuckDB's SQL, that judges the sums of each message in the table `source`.

    `sampled` is the condition for messages of the sample, and `readers` a table as in sums.Known.

    It returns a row for each message, and the tallies of all messages.
    """
    sums = [
        *(f"min({name}) AS {name}" for name in FIRST),
        *(f"sum({name})::BIGINT AS {name}" for name in COUNTS),
        "coalesce(bit_xor(delivered_xor), 0) AS delivered_xor",
        # If a message was sent to two topics, one of them determines the expected readers.
        "max(topic) AS topic",
    ]
    tallies = [f"count(*) FILTER ({condition}) AS {name}" for name, condition in _TALLIES.items()]
    own = ", ".join(("msg_id", *FIRST, *COUNTS, "clean", "sampled"))
    is_returned = "true" if return_all else _IS_RETURNED
    return f"""
WITH sums AS (
    SELECT msg_id, {", ".join(sums)} FROM {source} GROUP BY msg_id
), expected AS (
    SELECT {NUMBERED.format("subscribed_topic")} AS topic, count(*) AS expected_count,
        bit_xor({NUMBERED.format('"group"')}) AS expected_xor
    FROM {readers} GROUP BY ALL
), with_expected AS (
    SELECT sums.*, coalesce(expected_count, 0) AS expected_count, coalesce(expected_xor, 0) AS expected_xor
    FROM sums LEFT JOIN expected USING (topic)
), judged AS MATERIALIZED (
    SELECT *, ({_IS_CLEAN}) AS clean, {sampled} AS sampled FROM with_expected
)
SELECT 'message' AS part, {own} FROM judged WHERE {is_returned}
UNION ALL BY NAME
SELECT 'tally' AS part, {", ".join(tallies)} FROM judged"""
