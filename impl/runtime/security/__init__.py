"""Who may connect, and what others may read: TLS, the handshake of peers, files that contain secrets.

Begin with `peer_network.py`, the network between brokers; `tls_file.py` is RocketMQ's file of keys and
certificates.
"""
