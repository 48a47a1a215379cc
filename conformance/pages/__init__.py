"""Writes the generated pages of docs/conformance from recorded reports."""
