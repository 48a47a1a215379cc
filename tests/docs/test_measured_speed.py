"""The page of measured speed is what `mqproof bench page` writes from the kept results."""

from pathlib import Path

from tests.commands import mqproof

REFERENCE = Path(__file__).parents[2] / "docs/reference"


def test_the_page_of_measured_speed_is_written_from_the_kept_results(tmp_path: Path) -> None:
    results = sorted((REFERENCE / "speed").glob("*.json"))
    mqproof("bench", "page", *results, "--report", tmp_path / "speed.md")
    assert (REFERENCE / "speed.md").read_text("utf-8") == (tmp_path / "speed.md").read_text("utf-8"), (
        "write it again: mqproof bench page docs/reference/speed/*.json --report docs/reference/speed.md"
    )
