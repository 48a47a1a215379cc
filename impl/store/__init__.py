"""The store of one broker: commit log, consume queues and checkpoint, in RocketMQ's own file formats.

Begin with `message_store.py` (the store that a broker uses), then read `files/record.py` (the record format)
and `recovery.py` (the steps after a crash). Each rule that protects messages is one small named function,
listed in `rules.py`.
"""
