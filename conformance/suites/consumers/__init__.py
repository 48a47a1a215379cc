"""The suite of push consumers: our client's consumers as the members of a group."""
