"""The commands of `mqproof audit`, one module each, and their common parts. cli.py mounts them."""
