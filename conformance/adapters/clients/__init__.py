"""Client programs in other processes, all driven by the same commands.

Start with `driver_client.py`, which describes the commands. `client_program.py` is the program of our client.
"""
