"""The tree as rows: every entry once, parents first, however the session branches."""

from collections.abc import Iterable

from restartpoint.cli.tree import FOLD_ABOVE, Fold, Row, folded, rows_of
from restartpoint.contract import Entry, MessagePayload, user_message


def entries(*links: tuple[str, str | None]) -> list[Entry]:
    return [
        Entry(id=name, parent_id=parent, seq=seq, timestamp=1, payload=MessagePayload(message=user_message(name, 1)))
        for seq, (name, parent) in enumerate(links, 1)
    ]


def shape(rows: Iterable[Row]) -> list[str]:
    return [f"{'  ' * row.depth}{'+' if row.opens else ''}{row.entry.id}" for row in rows]


FORK = entries(("a", None), ("b", "a"), ("c", "b"), ("x", "a"), ("y", "x"))


def test_the_way_to_the_leaf_of_main_goes_straight_down() -> None:
    assert shape(rows_of(FORK, "c")) == ["a", "  +x", "  y", "b", "c"]
    assert shape(rows_of(FORK, "y")) == ["a", "  +b", "  c", "x", "y"]


def test_without_a_leaf_the_newest_branch_is_the_trunk() -> None:
    assert shape(rows_of(FORK, None)) == ["a", "  +b", "  c", "x", "y"]


def test_several_roots_and_branches_of_branches_have_their_depth() -> None:
    forest = entries(("a", None), ("b", None), ("c", "b"), ("d", "b"), ("e", "a"))
    assert shape(rows_of(forest, None)) == ["  +b", "    +c", "  d", "a", "e"]


def test_a_chain_of_twenty_thousand_entries_needs_no_recursion() -> None:
    chain = entries(("0", None), *((str(number), str(number - 1)) for number in range(1, 20_000)))
    rows = rows_of(chain, "19999")
    assert [row.depth for row in rows] == [0] * 20_000
    assert [row.entry.id for row in rows[:3]] == ["0", "1", "2"]


def test_a_long_stretch_is_folded_around_its_marks_and_counts_what_it_hides() -> None:
    chain = entries(("0", None), *((str(number), str(number - 1)) for number in range(1, 100)))
    lines = folded(rows_of(chain, "99"), {"50", "99"})
    hidden = sum(line.count for line in lines if isinstance(line, Fold))
    shown = [line.entry.id for line in lines if isinstance(line, Row)]
    assert hidden + len(shown) == 100
    assert {"0", "50", "99"} <= set(shown)
    assert len([line for line in lines if isinstance(line, Fold)]) == 2


def test_a_short_stretch_is_shown_whole() -> None:
    chain = entries(("0", None), *((str(number), str(number - 1)) for number in range(1, FOLD_ABOVE)))
    assert len(folded(rows_of(chain, None), set())) == FOLD_ABOVE
