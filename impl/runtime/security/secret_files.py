"""Files that contain secrets: accounts and private keys."""

import logging
from typing import Final

from mqproof.impl.runtime.disk import Disk

_log = logging.getLogger(__name__)

_OTHERS: Final = 0o007


def warn_if_exposed(disk: Disk, path: str) -> None:
    """Log a warning if users other than the owner and its group have access to the file."""
    mode = disk.mode(path)
    if mode is not None and mode & _OTHERS:
        _log.warning("%s contains secrets and has mode %04o: run `chmod 600 %s`", path, mode, path)
