"""Tables of another form that arrive while a watch runs: each file becomes an event log in the state.

A file is converted once, when it is new. Its log appears complete, under a name made from the file's path.
"""

import glob
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mqproof.report.printable import counted
from mqproof.spark_audit.incremental.state_folder import MAPPED
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.mapping.mapped_logs import convert
from mqproof.spark_audit.sources.mapping.mapping_file import MappingFile


class MappedArrivals:
    """Converts the files that mappings describe."""

    def __init__(self, mappings: Sequence[MappingFile], state: Path) -> None:
        """Create the folder.

        Raises:
            InputError: a watch cannot read a mapping. OSError: the folder cannot be created.
        """
        for mapping in mappings:
            if not mapping.is_numbered:
                raise InputError(f"{mapping.file}: it maps no column seq, which a watch needs")
            if mapping.needs_spark:
                raise InputError(f"{mapping.file}: a watch reads json, csv and parquet only")
        self._mappings = mappings
        self.folder = state.absolute() / MAPPED
        self.folder.mkdir(parents=True, exist_ok=True)

    def take(self, say: Callable[[str], None]) -> int:
        """Convert the files that are new, and return their number.

        Raises:
            MappingError: expressions do not fit a file. InputError: a file cannot be read.
        """
        taken = 0
        for one, target in self._new():
            temporary = target.with_name(f".{target.name}")
            temporary.unlink(missing_ok=True)
            done = convert(one, temporary, lambda _: None)
            temporary.replace(target)
            say(f"{one.sources[0].path}: {counted(done.events, 'event')}")
            taken += 1
        return taken

    def _new(self) -> Iterator[tuple[MappingFile, Path]]:
        """Yield a mapping of one file, and the log that it becomes."""
        for mapping in self._mappings:
            for number, source in enumerate(mapping.sources):
                for path in sorted(glob.glob(source.path, recursive=True)):  # noqa: PTH207
                    key = f"{mapping.file.absolute()}\0{number}\0{Path(path).absolute()}"
                    name = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:32]
                    target = self.folder / f"{name}.parquet"
                    if not target.exists():
                        only = replace(source, path=glob.escape(path))
                        yield replace(mapping, sources=(only,)), target
