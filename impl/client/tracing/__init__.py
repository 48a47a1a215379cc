"""Message trace: what producers and consumers report about each message, as messages of a trace topic.

Start with `trace_dispatcher.py`, which sends the records in the background. `trace_records.py` has the
format.
"""
