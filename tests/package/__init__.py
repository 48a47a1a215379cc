"""Tests of mqproof as users get it: the wheel, its extras, its public API and its size."""
