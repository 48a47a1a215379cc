"""What request processors share: checks that refuse a request, and the record of what a request changed."""
