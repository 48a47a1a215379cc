"""Tests of the filter server."""
