"""A name server and a broker inside the process of a test, with its time and its faults under control."""
