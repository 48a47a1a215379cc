"""Simulates a store on a disk that fails: programs, the store under test, and the judge."""
