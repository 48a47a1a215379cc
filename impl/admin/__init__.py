"""Administration: what `mqproof admin` does, and can be done from Python as well.

Begin with `admin.py`, how servers are asked; `topics.py`, `groups.py`, `brokers.py` and `messages.py` are the
operations, functions of an Admin; `tables.py` shows their results and `cli.py` has the commands.
"""
