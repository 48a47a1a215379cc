"""The result model shared by all commands, and its renderers.

The renderers write terminal text, JSON, JUnit XML, SARIF, Markdown and HTML. Begin at `model.py`. Each
renderer is a pure function from a `Report` to text, in a file of its own.
"""
