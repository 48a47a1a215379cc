"""Disk images that a crash may leave behind; each is recovered and compared with the model."""
