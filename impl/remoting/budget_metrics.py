"""The metrics of budgets: what peers use of each resource, and how often they were refused."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from mqproof.impl.metrics.families import Family, Metric, MetricType
from mqproof.impl.remoting.budget import Budget

_USED: Final = Metric(
    "mqproof_budget_used", MetricType.GAUGE, "What peers use of a budget, such as held pulls.", ("budget",)
)
_LIMIT: Final = Metric("mqproof_budget_limit", MetricType.GAUGE, "The limit of a budget.", ("budget",))
_REFUSED: Final = Metric(
    "mqproof_refused_requests_total",
    MetricType.COUNTER,
    "Requests and connections refused because a budget, or a share of it, was used up.",
    ("budget",),
)

BUDGET_METRICS: Final[Sequence[Metric]] = (_USED, _LIMIT, _REFUSED)

_VALUES: Final[Mapping[Metric, Callable[[Budget], int]]] = {
    _USED: lambda budget: budget.used,
    _LIMIT: lambda budget: budget.limits.total,
    _REFUSED: lambda budget: budget.refused,
}


def budget_families(budgets: Iterable[Budget], source_labels: Mapping[str, str]) -> list[Family]:
    """Return the values of these budgets. A label has the budget's name with `_` for spaces."""
    named = [((budget.name.replace(" ", "_"),), budget) for budget in budgets]
    return [
        Family(metric, source_labels, {labels: value(budget) for labels, budget in named})
        for metric, value in _VALUES.items()
    ]
