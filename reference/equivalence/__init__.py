"""The comparison of the reference models with TLC: state graphs of models and of mutants."""
