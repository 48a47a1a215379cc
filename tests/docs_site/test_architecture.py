"""Goal: the architecture picture shows every part and every import between parts, and is easy to read."""

import re
from itertools import pairwise
from xml.etree import ElementTree

from docs_site.architecture import PARTS, PICTURE, arrows, picture
from tests.import_graph import PARTS as FOLDERS
from tests.import_graph import modules

ARROWS = arrows()
SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_current() -> None:
    """Run `python -m docs_site.architecture` to update the picture."""
    assert PICTURE.read_text(encoding="utf-8") == picture(ARROWS)


def test_every_part_is_in_the_picture() -> None:
    assert set(PARTS) == {*FOLDERS, "mqproof"}


def test_arrows_point_only_to_lower_layers() -> None:
    order = list(PARTS)
    assert [(a, b) for a, b in ARROWS if order.index(a) >= order.index(b)] == []


def test_every_import_between_parts_has_an_arrow() -> None:
    """The imports are read from the sources, independently of the import graph that draws the picture."""
    pattern = re.compile(r"(?m)^\s*(?:from|import) mqproof\.(\w+)")
    found = set()
    for name, path in modules().items():
        parts = name.split(".")
        source = parts[1] if len(parts) > 1 and parts[1] in FOLDERS else "mqproof"
        if parts[0] == "mqproof":
            found |= {(source, target) for target in pattern.findall(path.read_text(encoding="utf-8"))}
    between = {(a, b) for a, b in found if a != b and b in FOLDERS}
    assert between <= set(ARROWS)
    assert {source for source, _ in between} == set(PARTS) - {"report"}


def test_the_command_line_has_an_arrow_to_each_part_that_it_loads() -> None:
    assert {target for source, target in ARROWS if source == "mqproof"} == set(FOLDERS)


def test_boxes_and_arrow_heads_do_not_overlap_and_labels_fit_their_boxes() -> None:
    root = ElementTree.fromstring(picture(ARROWS))
    tips = [path.get("d", "") for path in root.iter(f"{SVG}path") if "z" in path.get("d", "")]
    assert len(tips) == len(set(tips)) == len(ARROWS)
    boxes = [box for box in root.iter(f"{SVG}rect") if box.get("class") == "box"]
    tops = [float(box.get("y", 0)) for box in boxes]
    height, width = float(boxes[0].get("height", 0)), float(boxes[0].get("width", 0))
    assert all(low - high >= height for high, low in pairwise(tops))
    labels = [text for text in root.iter(f"{SVG}text") if text.get("x") != "10"]
    assert len(labels) == 2 * len(boxes)
    for label in labels:
        size = {"name": 14, "text": 12}[label.get("class", "")]
        assert 16 + 0.52 * size * len(label.text or "") < width, label.text
