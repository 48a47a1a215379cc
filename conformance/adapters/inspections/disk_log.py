"""The log of a broker, read from its disk: also records of queues that no client may read."""

from typing import Final

from mqproof.conformance.adapters.inspections.site import Site
from mqproof.conformance.answers.store_on_disk import LOG, Shape, read_log
from mqproof.conformance.answers.stored_record import StoredRecord
from mqproof.conformance.hosts.simulated import MASTER

_STORE: Final = "/store/"


def log_of(site: Site, node: str = MASTER) -> tuple[StoredRecord, ...]:
    """Return the records of the log that are on the disk, or in the page cache."""
    disk, config = site.cluster.machines[node].disk, site.cluster.config(node).store
    shape = Shape(config.commit_log_segment_bytes, config.consume_queue_segment_bytes, 1, 1, ())
    paths = disk.files(f"{_STORE}{LOG}".removesuffix("/"))
    return read_log({path.removeprefix(_STORE): disk.written(path) for path in paths}, shape).records


def queue_of(site: Site, topic: str, queue: int = 0) -> list[StoredRecord]:
    """Return the records of one queue of the broker."""
    return [each for each in log_of(site) if (each.topic, each.queue_id) == (topic, queue)]
