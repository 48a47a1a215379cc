"""Tests of the suite damage."""
