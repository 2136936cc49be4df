"""Text of strangers cannot act on the terminal."""

import sys
from unicodedata import category

import pytest
from rich.console import Console

from restartpoint.cli.safe_text import safe_text


@pytest.mark.parametrize(
    "text, shown",
    [
        ("plain", "plain"),
        ("", ""),
        ("ä ✓ 漢字 🙂", "ä ✓ 漢字 🙂"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\x00\x08\x7f", "\\x00\\x08\\x7f"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2066a\u2069", "\\u2066a\\u2069"),
        ("\u200b\ufeff\u00ad", "\\u200b\\ufeff\\xad"),
        ("\u2028\u2029\x85", "\\u2028\\u2029\\x85"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("[bold]x[/bold] [link=http://x]y[/link]", "[bold]x[/bold] [link=http://x]y[/link]"),
        ("C:\\new", "C:\\new"),
    ],
)
def test_what_could_act_is_written_as_an_escape_and_all_else_stays(text: str, shown: str) -> None:
    assert safe_text(text).plain == shown


def test_no_control_and_no_invisible_character_survives() -> None:
    active = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    every = "".join(chr(code) for code in range(sys.maxunicode + 1) if category(chr(code)) in active)
    assert {category(character) for character in safe_text(every).plain} & active == set()


def test_a_long_text_is_cut_before_it_is_looked_at() -> None:
    assert safe_text("x" * 10**7, longest=5).plain == "xxxx…"
    assert safe_text("xxxxx", longest=5).plain == "xxxxx"


def test_brackets_are_no_markup_when_they_are_printed() -> None:
    console = Console(force_terminal=True, color_system="truecolor", width=60)
    with console.capture() as capture:
        console.print(safe_text("[red]a[/red] :smile:"))
    assert capture.get() == "[red]a[/red] :smile:\n"
