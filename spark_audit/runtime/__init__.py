"""The environment of a run: the Spark session, scratch folders, and folders that are replaced atomically."""
