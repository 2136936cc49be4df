"""Faults that cosmic-ray has no operator for: what guards, writes, cases and filters can lose."""

import ast
from collections.abc import Iterator
from typing import Final

FEWEST_ITEMS: Final = 2
"""A tuple with fewer items loses none of them."""

Edit = tuple[str, int, int, str]
"""Name of the operator, two offsets, and the text that stands for what lies between them."""


def own_edits(source: str) -> Iterator[Edit]:
    """One item less in a tuple (a guard, a write, a phase), ``in`` and ``not in``, negated case guards and filters."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(line: int, byte: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:byte].decode())

    def span(node: ast.expr) -> tuple[int, int]:
        end = offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        return offset(node.lineno, node.col_offset), end

    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Tuple(elts=[*items], ctx=ast.Load()) if len(items) >= FEWEST_ITEMS:
                yield from _fewer(source, span(node), [span(item) for item in items])
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[right]):
                swapped = " in " if isinstance(op, ast.NotIn) else " not in "
                yield "SwapMembership", span(left)[1], span(right)[0], swapped
            case ast.match_case(guard=ast.expr() as guard):
                yield "NegateCaseGuard", *_negated(source, span(guard))
            case ast.comprehension(ifs=[*filters]):
                for one in filters:
                    yield "NegateFilter", *_negated(source, span(one))


def _negated(source: str, place: tuple[int, int]) -> tuple[int, int, str]:
    return *place, f"(not ({source[slice(*place)]}))"


def _fewer(source: str, whole: tuple[int, int], items: list[tuple[int, int]]) -> Iterator[Edit]:
    """An item goes with the comma before or after it; the tuple ends with a comma, so that one item is a tuple too."""
    comma = "" if "," in source[items[-1][1] : whole[1]] else ","
    for index, (start, end) in enumerate(items):
        if index + 1 < len(items):
            following, last = items[index + 1][0], items[-1][1]
            gap = _line_breaks(source[start:following])
            yield "DropItem", start, last, gap + source[following:last] + comma
        else:
            before = items[index - 1][1]
            yield "DropItem", before, end, comma + _line_breaks(source[before:end])


def _line_breaks(text: str) -> str:
    """As many line breaks, so that later lines keep their numbers."""
    return "\n" * text.count("\n")
