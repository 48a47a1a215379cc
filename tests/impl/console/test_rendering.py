"""Tests the rendering: escaping, labels, and that a page needs nothing from elsewhere."""

import re
from typing import Any

from markupsafe import Markup

from mqproof.impl.console.page_parts import (
    Button,
    Cell,
    Chart,
    Charts,
    Facts,
    Field,
    Form,
    Legend,
    Links,
    Note,
    Page,
    Part,
    Table,
    Text,
    Tiles,
    columns,
    link,
)
from mqproof.impl.console.rendering import render, visible_lines

EVIL = "<script>alert('x')</script>\u202e\x1b"
CONTEXT: dict[str, Any] = {
    "account": EVIL,
    "allow_changes": True,
    "form_token": "token",
    "name_servers": EVIL,
    "notice": ("bad", EVIL),
    "now": "now",
    "show_navigation": True,
    "time_zone": "UTC",
    "version": "1",
}


def every_part(text: str) -> list[Part]:
    fields = [Field(f"f-{kind}", text, text, kind, [(text, text)], hint=text) for kind in FIELD_TYPES]
    chart = Chart(text, Markup("<svg></svg>"), [Legend(text, "1")], link("/topic", name=text))
    cells = [
        Cell(text),
        Cell(text, href=link("/topic", name=text)),
        Cell(text, tone="bad"),
        Cell(text, is_code=True),
        Cell("", button=Button("Go", "/go", {"value": text}, text)),
    ]
    return [
        Table(text, columns("a", "b", "c", "d", "#e"), [cells], "", note=text),
        Table(text, columns("a"), [], text, text),
        Facts(text, [(text, text)]),
        Facts(text, [(text, text)], is_folded=True),
        Tiles([("name", "1", text)]),
        chart,
        Charts(text, [chart], text),
        Charts(text, [], text),
        Text(text, text, text),
        Note("bad", text),
        Links("Pages", [(text, link("/topic", name=text))], text),
        Form(text, "/go", fields, "Go", note=text),
        Form(text, "/go", fields, "Go", "get", note=text, is_folded=True, is_danger=True),
    ]


FIELD_TYPES = ("text", "number", "password", "datetime-local", "checkbox", "hidden", "select", "textarea")


def test_text_of_the_cluster_never_becomes_markup() -> None:
    page = Page(EVIL, "/topics", every_part(EVIL), EVIL, (link("/topics", name=EVIL), EVIL))
    html = render(page, **CONTEXT)
    assert "<script" not in html
    values = r"<textarea.*?</textarea>|<[^>]*>"  # the value of a field is sent as it is
    shown = re.sub(values, "", html, flags=re.DOTALL)
    assert "\u202e" not in shown
    assert "\\u202e\\x1b" in shown


def test_every_field_has_a_label_and_every_post_form_the_token() -> None:
    html = render(Page("T", "/topics", every_part("x")), **CONTEXT)
    for kind in FIELD_TYPES:
        if kind != "hidden":
            assert f'<label for="x--f-{kind}">' in html
            assert f'id="x--f-{kind}"' in html
    forms = re.findall(r'<form[^>]*method="post".*?</form>', html, re.DOTALL)
    assert len(forms) == 3  # the logout, the button, and one of the two forms
    assert all('name="form_token" value="token"' in form for form in forms)
    assert html.count('name="form_token"') == 3


def test_a_page_refers_only_to_the_console_itself() -> None:
    html = render(Page("T", "/topics", every_part("x")), **CONTEXT)
    assert not re.findall(r"""(?:src|href|action)=["'](?!/|#)""", html)
    assert not re.findall(r"<script|<style| style=| on\w+=", html)


def test_the_current_section_is_marked() -> None:
    html = render(Page("T", "/topics"), **CONTEXT)
    assert re.findall(r'<a href="([^"]+)" aria-current="page">', html) == ["/topics"]


def test_line_breaks_and_tabs_of_a_body_are_kept() -> None:
    assert visible_lines("a\n\tb\x00\u202e") == "a\n\tb\\x00\\u202e"
