"""The errors of a store."""


class StoreError(Exception):
    """The store cannot be used. The message is one line that names the file and the expectation."""
