"""Writes the generated pages of docs/ from recorded reports."""
