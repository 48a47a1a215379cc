"""Calls of our client's interface, each compared with what the protocol reference and the guide say.

Start with `every_call.py`. The servers are scripted (`scripted_servers.py`): they record every request. So
each field of each request is compared, each value that a call returns, and each error that it raises.
"""
