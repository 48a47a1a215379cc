"""Faults and what injects them: relays, links, shell commands and fault controls of a broker."""
