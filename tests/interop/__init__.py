"""Tests our code together with Apache RocketMQ: each side must understand the data of the other.

All but test_golden.py need Maven and a JDK: `make test-apache`.
"""
