"""The page of known issues has a row for each script, with the releases on which it is observed."""

import re
from pathlib import Path

from tests.interop.known_issues import ISSUES, OURS

PAGE = Path(__file__).parents[2] / "docs/reference/conformance/known-issues.md"


def test_page_has_the_issues_of_the_scripts() -> None:
    rows = re.findall(r"^\| (\S+) \| ([^|]+) \| [^|]+ \| `(\w+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    expected = [
        (
            issue.number,
            ", ".join((*issue.releases, *(["mqproof"] if issue.number in OURS else []))),
            issue.script.__qualname__.split(".")[0],
        )
        for issue in ISSUES
    ]
    assert rows == expected


def test_fifteen_issues_are_reproduced() -> None:
    assert len({issue.number for issue in ISSUES}) >= 15
