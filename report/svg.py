"""Prepares an SVG document for use inside an HTML page: no prolog, no script, nothing fetched."""

from typing import Final
from xml.etree import ElementTree

_SVG: Final = "http://www.w3.org/2000/svg"
_XLINK: Final = "http://www.w3.org/1999/xlink"
_KEPT_OUT: Final = {f"{{{_SVG}}}{name}" for name in ("script", "foreignObject", "metadata")}


def inline(svg: str, title: str) -> str:
    """Return the SVG element of the document as markup for an HTML page, with a title for screen readers.

    Scripts, event handlers, foreign objects and references that leave the document are removed.

    Raises:
        ValueError: not a well-formed SVG document; the message names the title.
    """
    try:
        root = ElementTree.fromstring(svg)
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"figure {title!r} is not an SVG document: {error}") from None
    if root.tag != f"{{{_SVG}}}svg":
        raise ValueError(f"figure {title!r} is not an SVG document: its root is <{root.tag}>")
    for element in root.iter():
        _clean(element)
    root.set("role", "img")
    root.set("aria-label", title)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element) -> None:
    for child in [child for child in element if child.tag in _KEPT_OUT]:
        element.remove(child)
    for name, value in list(element.attrib.items()):
        local = name.rsplit("}", 1)[-1].lower()
        leaves = local == "href" and not value.startswith(("#", "data:image/"))
        if local.startswith("on") or leaves:
            del element.attrib[name]
