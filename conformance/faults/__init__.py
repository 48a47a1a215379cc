"""Disturbs a running broker: fault controls of its process, and relays that disturb its connections."""
