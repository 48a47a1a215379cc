"""The step that several suites share: a query of the offset that a group committed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """The broker returned this offset for the group; None means "not found"."""

    queue_id: int
    offset: int | None

    def __str__(self) -> str:
        return f"committed in queue {self.queue_id}: {'nothing' if self.offset is None else self.offset}"
