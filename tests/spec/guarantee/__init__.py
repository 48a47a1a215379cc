"""Tests of spec/guarantee/."""
