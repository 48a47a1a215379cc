"""The files of a broker's store directory, read as tables for the checks."""
