"""The store of one broker: commit log, consume queues, checkpoint, in RocketMQ's own file formats.

Begin with `message_store.py` (what a broker uses), then `record.py` (the bytes) and `recovery.py` (what
happens after a crash). Each rule that keeps messages safe is one small named function, listed in `rules.py`.
"""
