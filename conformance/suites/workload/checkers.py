"""The rules of histories that a run of the workload suite selects."""

from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.history.rules import RULES, Rule


def rules(options: RunOptions) -> list[Rule]:
    """Return the selected rules; they are selected by their own ids or by those of their invariants."""
    return [rule for rule in RULES if options.chosen((rule.id, rule.invariant))]
