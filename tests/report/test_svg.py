"""Tests that an SVG document becomes safe markup for an HTML page."""

import pytest

from mqproof.report.svg import inline

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'


def test_scripts_handlers_and_outside_references_are_removed() -> None:
    parts = (
        '<script>x()</script><g onclick="x()"><a xlink:href="http://h/"/></g>'
        "<foreignObject/><metadata>m</metadata>"
    )
    shown = inline(f'<?xml version="1.0"?>{HEAD}{parts}</svg>', "log sizes")
    assert not any(word in shown for word in ("script", "onclick", "http://h/", "foreign", "metadata", "<?"))
    assert shown.startswith("<svg ")
    assert 'aria-label="log sizes"' in shown


def test_references_inside_the_document_and_embedded_images_stay() -> None:
    shown = inline(f'{HEAD}<use href="#a"/><image href="data:image/png;base64,AA"/></svg>', "t")
    assert 'href="#a"' in shown
    assert 'href="data:image/png;base64,AA"' in shown


@pytest.mark.parametrize("text", ["", "<svg", "<html/>", "<svg/>", "\0"])
def test_another_document_is_refused_with_the_title(text: str) -> None:
    with pytest.raises(ValueError, match="figure 'sizes' is not an SVG document"):
        inline(text, "sizes")
