"""Goal: the architecture picture shows every part and every import between parts, and is easy to read."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from docs_site.architecture import PARTS, PICTURE, Arrow, arrows, picture
from tests.import_graph import PARTS as FOLDERS
from tests.import_graph import modules

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module", name="found")
def _found() -> list[Arrow]:
    return arrows()


def test_the_picture_is_current(found: list[Arrow]) -> None:
    """Run `python -m docs_site.architecture` to update the picture."""
    assert PICTURE.read_text(encoding="utf-8") == picture(found)


def test_every_part_is_in_the_picture() -> None:
    assert set(PARTS) == {*FOLDERS, "mqproof"}


def test_arrows_point_only_to_lower_layers(found: list[Arrow]) -> None:
    order = list(PARTS)
    assert [(a, b) for a, b in found if order.index(a) >= order.index(b)] == []


def test_every_import_between_parts_has_an_arrow(found: list[Arrow]) -> None:
    """The imports are read from the sources, independently of the import graph that draws the picture."""
    pattern = re.compile(r"(?m)^\s*(?:from|import) mqproof\.(\w+)")
    imports = set()
    for name, path in modules().items():
        parts = name.split(".")
        source = parts[1] if len(parts) > 1 and parts[1] in FOLDERS else "mqproof"
        if parts[0] == "mqproof":
            imports |= {(source, target) for target in pattern.findall(path.read_text(encoding="utf-8"))}
    between = {(a, b) for a, b in imports if a != b and b in FOLDERS}
    assert between <= set(found)
    assert {source for source, _ in between} == set(PARTS) - {"report"}


def test_the_command_line_has_an_arrow_to_each_part_that_it_loads(found: list[Arrow]) -> None:
    assert {target for source, target in found if source == "mqproof"} == set(FOLDERS)


def test_boxes_and_arrow_heads_do_not_overlap_and_labels_fit_their_boxes(found: list[Arrow]) -> None:
    root = ElementTree.fromstring(picture(found))
    tips = [path.get("d", "") for path in root.iter(f"{SVG}path") if "z" in path.get("d", "")]
    assert len(tips) == len(set(tips)) == len(found)
    boxes = [box for box in root.iter(f"{SVG}rect") if box.get("class") == "box"]
    tops = [float(box.get("y", 0)) for box in boxes]
    height, width = float(boxes[0].get("height", 0)), float(boxes[0].get("width", 0))
    assert all(low - high >= height for high, low in pairwise(tops))
    labels = [text for text in root.iter(f"{SVG}text") if text.get("x") != "10"]
    assert len(labels) == 2 * len(boxes)
    for label in labels:
        size = {"name": 14, "text": 12}[label.get("class", "")]
        assert 16 + 0.52 * size * len(label.text or "") < width, label.text
