"""Stores a consumer group's offset and records it in the event log.

See docs/reference/protocol/offsets.md, "Offset requests".
"""

from collections.abc import Mapping

from mqproof.impl.broker.services import Services
from mqproof.impl.remoting.headers import PullRequest, UpdateOffsetRequest
from mqproof.spec.events import Kind


def commit_offset(
    services: Services,
    header: UpdateOffsetRequest | PullRequest,
    attrs: Mapping[str, str] | None = None,
) -> None:
    """Commit an offset from its own request or from a pull; `attrs` are those of the event."""
    services.offsets.commit(header.consumer_group, header.topic, header.queue_id, header.commit_offset)
    if services.events is not None:
        services.events.emit(
            Kind.OFFSET_COMMIT,
            group=header.consumer_group,
            topic=header.topic,
            queue_id=header.queue_id,
            queue_offset=header.commit_offset,
            attrs=attrs,
        )
