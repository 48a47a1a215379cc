"""A session with a cluster: connections, name servers, routes, heartbeats and requests from brokers.

Start with `session.py`.
"""
