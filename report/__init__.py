"""The one result model and its renderers: terminal, JSON, JUnit XML, SARIF, Markdown, one HTML page.

Begin at `model.py`; each renderer is a pure function from a `Report` to text, in a file of its own.
"""
