"""Generates the pages of the documentation site that follow from the code, and the architecture picture.

MkDocs calls `hooks.py`. `commands.py`, `configuration.py`, `catalogue.py` and `api.py` return one page each
as Markdown. These pages are written while the site is built, so they are always current.
`architecture.py` draws the import graph; its picture is committed, because README.md shows it.
This package is not part of the wheel.
"""
