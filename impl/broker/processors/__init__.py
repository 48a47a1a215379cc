"""Request processors: the functions that answer each request code. `all_processors.py` lists them."""
