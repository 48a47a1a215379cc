"""Adapters in any language: a process that answers requests, one JSON object a line.

docs/reference/conformance/adapter-protocol.md specifies the protocol. Start with `adapter_proxy`.
"""
