"""Fails a test in which a request processor has a defect that its client only sees as SYSTEM_ERROR."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_DEFECTS = (TypeError, AttributeError, NameError, LookupError, AssertionError)


class _Kept(logging.Handler):
    """Keeps the errors of the log that no input may cause."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, _DEFECTS):
            self.found.append(error)


@contextmanager
def no_defects() -> Iterator[None]:
    log, kept = logging.getLogger("mqproof.impl.remoting.request_handler"), _Kept()
    log.addHandler(kept)
    try:
        yield
    finally:
        log.removeHandler(kept)
    assert kept.found == []
