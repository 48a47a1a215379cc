"""`python -m mqproof` is the command `mqproof`."""

from mqproof.cli import main

main()
