"""Runs that follow one another: each begins with the state that the one before left. Begin at
checkpoint.py."""
