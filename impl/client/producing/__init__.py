"""Producers, and the choice of a queue for each message."""
