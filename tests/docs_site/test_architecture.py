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
    """Write it again with `python -m docs_site.architecture`."""
    assert PICTURE.read_text(encoding="utf-8") == picture(ARROWS)


def test_every_part_is_in_the_picture() -> None:
    assert set(PARTS) == {*FOLDERS, "mqproof"}


def test_arrows_lead_to_lower_layers_only() -> None:
    order = list(PARTS)
    assert [(a, b) for a, b in ARROWS if order.index(a) >= order.index(b)] == []


def test_every_import_statement_between_parts_is_an_arrow() -> None:
    """The statements are read from the sources, without the import graph that draws the picture."""
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


def test_the_command_line_has_an_arrow_to_every_part_that_it_loads_by_name() -> None:
    assert {target for source, target in ARROWS if source == "mqproof"} == set(FOLDERS)


def test_every_arrow_has_its_own_tip_and_no_label_leaves_its_box() -> None:
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
