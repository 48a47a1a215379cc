"""The files of a store: their formats and paths, and the objects that read, append to and sync them.

Begin with `record.py` (one record of the commit log), then read `segments.py` (a long file in segments). The
modules beside this folder decide when a file is written, flushed, recovered or deleted.
"""
