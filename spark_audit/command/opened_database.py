"""Opens DuckDB and the scratch folder of a command that runs on the embedded engine."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mqproof.report.console import terminable
from mqproof.report.model import Exit
from mqproof.spark_audit.command.failures import OTHER_FOLDER_HINT, fail, fail_if_full, temporary_folder_full
from mqproof.spark_audit.command.option_groups import check_memory
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.runtime.scratch import scratch

if TYPE_CHECKING:
    from mqproof.spark_audit.engine.embedded.database import Database

_DISK_FULL: Final = "No space left on device"


@contextmanager
def opened_database(memory: str | None = None) -> "Iterator[tuple[Database, Path]]":
    """Yield a database and a folder for temporary files; the embedded engine is in use meanwhile.

    `memory` is in Spark's notation, such as 2g; without it, DuckDB takes at most 80 % of the machine's.
    """
    import duckdb

    from mqproof.spark_audit.engine.embedded.database import Database

    if memory:
        check_memory(memory)
    base = Path(tempfile.gettempdir()).resolve()
    with terminable(), active.embedded(), _scratch_of(base) as folder:
        try:
            with closing(Database(folder)) as database:
                if memory:
                    database.run(f"SET memory_limit = '{memory}iB'")
                yield database, folder
        except OSError as error:
            fail_if_full(folder, error)
            raise
        except duckdb.OutOfMemoryException:
            fail("DuckDB ran out of memory: raise --memory, or use --engine spark", Exit.TOOL)
        except duckdb.Error as error:
            if _DISK_FULL in str(error):
                fail(temporary_folder_full(folder), Exit.TOOL)
            fail(f"DuckDB failed: {str(error).splitlines()[0][:300]}", Exit.TOOL)


@contextmanager
def _scratch_of(base: Path) -> Iterator[Path]:
    with ExitStack() as opened:
        try:
            folder = opened.enter_context(scratch(base))
        except OSError as error:
            fail(f"{base}: {error.strerror}, cannot hold temporary files; {OTHER_FOLDER_HINT}")
        yield folder
