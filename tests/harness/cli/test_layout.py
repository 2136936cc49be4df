"""Columns fit any width."""

import pytest
from rich.console import Console
from rich.text import Text

from restartpoint.cli.layout import print_rows

ROWS = [("one", "first", "word " * 20), ("twenty-two", "a second that is long", "x" * 90)]


def printed(width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        print_rows(console, [[Text(cell) for cell in row] for row in ROWS])
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [45, 60, 80, 200])
def test_no_line_is_wider_than_the_console_or_ends_in_blanks(width: int) -> None:
    lines = printed(width)
    assert max(map(len, lines)) <= width
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("width", [1, 10, 45, 200])
def test_nothing_is_lost_at_any_width(width: int) -> None:
    kept = "".join(printed(width)).replace(" ", "")
    assert sorted(kept) == sorted("".join(cell.replace(" ", "") for row in ROWS for cell in row))


def test_no_rows_print_nothing() -> None:
    console = Console()
    with console.capture() as capture:
        print_rows(console, [])
    assert capture.get() == ""
