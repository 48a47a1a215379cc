"""Disk images that a crash may leave; each is recovered and compared with the model."""
