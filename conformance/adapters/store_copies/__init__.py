"""Stores on copies of a disk, and drawn ones: what a start makes of damaged, expired and lost files."""
