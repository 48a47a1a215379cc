"""Tests of the documentation site: its generated pages, its navigation and its links."""
