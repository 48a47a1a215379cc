"""Rules that every answer of a server obeys, whatever the suite examines.

`watch.py` sees each frame between the clients of a suite and the servers. `rules.py` compares every answer
with its request, with the protocol documentation, and with what earlier answers established. No code of
`impl` takes part, so that a defect which reader and writer share is seen too. Start with `rules.py`.
"""
