"""What a run needs around it: the Spark session, scratch folders, folders that appear whole."""
