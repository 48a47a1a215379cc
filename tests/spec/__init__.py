"""Tests of spec/."""
