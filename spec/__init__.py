"""The specification: TLA+ modules, the catalogue of invariants, the event vocabulary, and the TLC runner.

Begin at `invariants.toml` (loaded by `catalogue.py`), then `tla/Flush.tla`; `tlc/` runs the models.
"""
