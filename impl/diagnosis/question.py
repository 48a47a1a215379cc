"""Answers a question: reads the logs and the cluster, then applies the rules."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mqproof.impl.admin.admin import Admin
from mqproof.impl.diagnosis.backlog_rules import diagnose_group
from mqproof.impl.diagnosis.cluster import Reader, read_backlog, read_message
from mqproof.impl.diagnosis.evidence import Answer, Evidence
from mqproof.impl.diagnosis.group_rules import diagnose
from mqproof.impl.diagnosis.history import History
from mqproof.impl.diagnosis.log_files import ids_with_key, read_histories
from mqproof.impl.remoting.message import UNIQUE_KEY
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.runtime import Runtime

MESSAGES_MAX: Final = 8
"""The most messages with one key that are diagnosed, the newest first."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: about one message, about all messages with a key, or about a group and a topic."""

    message_id: str | None = None
    key: str | None = None
    topic: str | None = None
    group: str | None = None


async def answers(
    question: Question, admin: Admin | None, logs: Sequence[Path], runtime: Runtime
) -> tuple[Answer, ...]:
    """Return the answers. Without an administrator only the logs are read.

    Raises:
        LogError: a log cannot be read. SearchError: the question must name a topic.
        UnreachableError: no name server answers. ClientError: a name server's answer is invalid.
    """
    reader = None
    if admin is not None:
        reader = Reader(admin)
        await reader.connect()
    if question.message_id is None and question.key is None:
        assert reader is not None, "the command line asks for a cluster"
        assert question.topic is not None
        assert question.group is not None
        return (diagnose_group(await read_backlog(reader, question.topic, question.group)),)
    ids = [question.message_id] if question.message_id else await _ids(question, reader, logs)
    histories = await asyncio.to_thread(read_histories, logs, ids) if logs else {}
    found: list[Answer] = []
    for message_id in ids:
        history = histories.get(message_id, History())
        if reader is None:
            evidence = Evidence(
                message_id, now_ms(runtime.clock), question.topic or history.topic, history=history
            )
        else:
            evidence = await read_message(reader, message_id, question.topic, question.group, history)
        found += diagnose(evidence, question.group)
    return tuple(found)


async def _ids(question: Question, reader: Reader | None, logs: Sequence[Path]) -> list[str]:
    """Return the ids of the messages with the key, newest first; at most MESSAGES_MAX."""
    assert question.key is not None
    ids: dict[str, None] = {}
    if reader is not None and question.topic is not None:
        stored = await reader.find(question.topic, question.key, unique=False)
        newest = sorted(stored, key=lambda each: -each[1].store_timestamp_ms)
        ids.update(
            dict.fromkeys(each.message.properties.get(UNIQUE_KEY, each.message_id) for _, each in newest)
        )
    if logs:
        found = await asyncio.to_thread(ids_with_key, logs, question.key, question.topic)
        ids.update(dict.fromkeys(found))
    return list(ids)[:MESSAGES_MAX]
