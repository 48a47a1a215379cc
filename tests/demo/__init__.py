"""Tests of mqproof/demo."""
