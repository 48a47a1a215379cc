"""Tests of spec/tlc/."""
