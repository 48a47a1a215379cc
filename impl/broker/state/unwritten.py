"""Notes whether a table has changes that its file lacks."""

from collections.abc import Iterator
from contextlib import contextmanager


class Unwritten:
    """Changes of a table since its file was last written."""

    def __init__(self) -> None:
        self.is_any = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write the changes in the block; those made meanwhile are new ones.

        If the block fails or is cancelled, all are still unwritten.
        """
        before, self.is_any = self.is_any, False
        try:
            yield
        except BaseException:
            self.is_any |= before
            raise
