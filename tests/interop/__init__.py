"""Ours and Apache RocketMQ's together: what each wrote, sent or stored, the other must understand.

All but test_golden.py need Maven and a JDK: `make test-apache`.
"""
