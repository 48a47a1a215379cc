"""The files of a broker that was stopped, compared with its log."""

from typing import Final

from mqproof.conformance.adapters.inspections.site import Site
from mqproof.conformance.answers import file_rules
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.store_on_disk import Shape
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.impl.store.config import StoreConfig

_STORE: Final = "/store/"


def compare_files(site: Site, name: str, config: StoreConfig) -> None:
    """Report each file of the stopped broker that does not follow from its log."""
    disk = site.cluster.machines[MASTER].disk
    shape = Shape(
        config.commit_log_segment_bytes, config.consume_queue_segment_bytes, config.index_slots,
        config.index_entries, config.delay_levels_ms,
    )  # fmt: skip
    files = {path.removeprefix(_STORE): disk.written(path) for path in disk.files(_STORE.rstrip("/"))}
    wrong = (*file_rules.wrong_in_files(files, shape), *file_rules.wrong_tables(files))
    site.watch.found("an inspection", [Wrong(each.rule, f"{name}: {each.text}") for each in wrong])
