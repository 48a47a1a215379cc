"""Texts and names as literals of SQL, which Spark and DuckDB read alike."""


def quoted(*texts: str) -> str:
    """Return texts as a comma-separated list of SQL literals."""
    return ", ".join("'" + text.replace("'", "''") + "'" for text in texts)


def identifier(name: str) -> str:
    """Return a column's name for DuckDB; a dot leads into a struct."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))
