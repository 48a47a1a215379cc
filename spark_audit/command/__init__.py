"""The commands of `mqproof audit`, a module each, and what they have in common. cli.py mounts them."""
