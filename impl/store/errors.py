"""What goes wrong in a store."""


class StoreError(Exception):
    """The store cannot be used as asked. One line that names the file and what was expected."""
