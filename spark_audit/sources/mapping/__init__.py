"""Tables and logs of another form, mapped to events by a file of the user."""
