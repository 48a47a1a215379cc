"""Goal: links of Markdown files outside docs/ are not broken. The build of the site checks links in docs/."""

import re
import subprocess

from docs_site.pages import PAGES
from docs_site.source_links import ROOT

LINK = re.compile(r"\]\(([^)#\s]+)")


def test_every_relative_link_points_to_a_file_or_a_generated_page() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    generated = {ROOT / "docs" / page for page in PAGES}
    broken = []
    for file in (ROOT / name for name in listed.stdout.splitlines() if not name.startswith("docs/")):
        for target in LINK.findall(file.read_text(encoding="utf-8")):
            path = (file.parent / target).resolve()
            if "://" not in target and not path.exists() and path not in generated:
                broken.append(f"{file.relative_to(ROOT)}: {target}")
    assert broken == []
