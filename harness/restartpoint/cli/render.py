"""An inspection for people: tree, lanes, open operations, registers, ledger. Every text of the file is made safe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from restartpoint.cli.inspection import Inspection, LaneView, OpenOperation
from restartpoint.cli.layout import print_rows
from restartpoint.cli.safe_text import safe_text
from restartpoint.cli.tree import Fold, Row, folded, rows_of
from restartpoint.cli.words import (
    LONGEST_VALUE,
    ShortIds,
    at_time,
    entry_words,
    last_result_words,
    usage_words,
    value_words,
)
from restartpoint.contract import FACT_LABEL, FACT_NAME, UnsetType

__all__ = ["heading", "print_inspection", "print_ledger"]

_MOST_ROWS = 30
_DEEPEST = 12


def heading(console: Console, text: str) -> None:
    """A line that names what follows."""
    console.print()
    console.print(safe_text(text, style="bold"))


def print_inspection(console: Console, inspection: Inspection, *, everything: bool = False) -> None:
    """Print a session; long lists are folded unless ``everything`` is wanted."""
    shorten = ShortIds(_ids(inspection))
    _print_identity(console, inspection)
    heading(console, f"Tree ({_count(len(inspection.entries), 'entry', 'entries')})")
    _print_tree(console, inspection, shorten, everything=everything)
    heading(console, "Lanes")
    print_rows(console, [_lane_row(lane, shorten) for lane in inspection.lanes])
    for operation in inspection.operations:
        heading(console, "Open operation")
        _print_operation(console, operation, shorten)
    if not inspection.operations:
        heading(console, "Open operation")
        console.print("  none")
    heading(console, f"Registers ({len(inspection.registers)})")
    _print_registers(console, inspection, shorten, everything=everything)
    heading(console, f"Ledger ({_count(len(inspection.usage), 'row', 'rows')})")
    print_ledger(console, inspection, shorten, everything=everything)


def _ids(inspection: Inspection) -> Iterable[str]:
    yield from (entry.id for entry in inspection.entries)
    yield from (row.id for row in inspection.usage)
    for operation in inspection.operations:
        yield operation.id
        yield from (reserved.id for reserved in operation.standing.reserved)


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


# --- identity ---------------------------------------------------------------------------------------------------


def _print_identity(console: Console, inspection: Inspection) -> None:
    metadata = inspection.metadata
    names = [register.value for register in inspection.registers if register.namespace is FACT_NAME]
    rows = [
        ("Session", metadata.id),
        *(("Name", name) for name in names),
        ("File", f"{inspection.path} ({inspection.backend}, storage version {metadata.storage_version})"),
        ("Created", at_time(metadata.created_at)),
        *_present("Folder", metadata.cwd),
        *_present("Parent", metadata.parent_session_id),
        *_present("Parent", metadata.legacy_parent_session_path),
    ]
    for name, text in rows:
        console.print(Text(f"{name:<8}", style="bold") + safe_text(text, longest=LONGEST_VALUE))
    if inspection.torn_bytes:
        torn = (
            f"The last line is torn ({inspection.torn_bytes} bytes): that commit never happened; a writer cuts it off."
        )
        console.print(Text(torn, style="yellow"))


def _present(name: str, value: str | UnsetType) -> list[tuple[str, str]]:
    return [] if isinstance(value, UnsetType) else [(name, value)]


# --- tree -------------------------------------------------------------------------------------------------------


def _print_tree(console: Console, inspection: Inspection, shorten: ShortIds, *, everything: bool) -> None:
    leaves: dict[str | None, list[str]] = {}
    for lane in inspection.lanes:
        leaves.setdefault(lane.leaf_id, []).append(lane.name)
    main = next((lane.leaf_id for lane in inspection.lanes if lane.name == "main"), None)
    labels = {register.key: register.value for register in inspection.registers if register.namespace is FACT_LABEL}
    rows = rows_of(inspection.entries, main)
    marked = {leaf for leaf in leaves if leaf is not None} | labels.keys()
    if None in leaves or not rows:
        console.print(_line(console, Text("  (root)", style="dim"), _marks(leaves.get(None, []), None)))
    for line in rows if everything else folded(rows, marked):
        match line:
            case Row():
                text = _entry_line(line, shorten, console.width)
                console.print(_line(console, text, _marks(leaves.get(line.entry.id, []), labels.get(line.entry.id))))
            case Fold(count=count):
                console.print(_line(console, Text(f"{_indent(line.depth)}   … {count:,} more (--all)", style="dim")))


def _indent(depth: int, *, opens: bool = False) -> str:
    shown = min(depth, _DEEPEST)
    return "  " + "│ " * (shown - opens) + "├─" * opens


def _entry_line(row: Row, shorten: ShortIds, width: int) -> Text:
    kind, words = entry_words(row.entry)
    return Text.assemble(
        (_indent(row.depth, opens=row.opens), "dim"),
        safe_text(shorten(row.entry.id), longest=40, style="cyan"),
        " ",
        safe_text(kind, longest=60, style="bold"),
        " ",
        safe_text(words, longest=min(width, LONGEST_VALUE)),
    )


def _marks(lanes: Sequence[str], label: str | None) -> Text:
    marks = Text()
    for lane in lanes:
        marks.append(" ◀ ", style="green")
        marks.append_text(safe_text(lane, longest=60, style="green"))
    if label is not None:
        marks.append(" # ", style="yellow")
        marks.append_text(safe_text(label, longest=60, style="yellow"))
    return marks


def _line(console: Console, text: Text, marks: Text | None = None) -> Text:
    """One line of the console's width: the text is cut so that the marks at its end stay."""
    marks = Text() if marks is None else marks
    marks.truncate(console.width // 2, overflow="ellipsis")
    text.truncate(console.width - marks.cell_len, overflow="ellipsis")
    text.append_text(marks)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


# --- lanes and operations ---------------------------------------------------------------------------------------


def _lane_row(lane: LaneView, shorten: ShortIds) -> tuple[Text, Text]:
    facts = ["leaf at the root" if lane.leaf_id is None else f"leaf {shorten(lane.leaf_id)}"]
    if lane.configuration is None:
        facts.append("not configured yet")
    else:
        model, tools = lane.configuration.model, lane.configuration.active_tool_names
        facts.append(f"model {model.provider}/{model.model_id}, thinking {lane.configuration.thinking_level}")
        facts.append(f"tools {', '.join(tools)}" if tools else "no tools")
    if lane.state is not None:
        current, queued = lane.state.current_operation_id, len(lane.state.pending_next_run)
        facts.append("idle" if current is None else f"open operation {shorten(current)}")
        facts += [f"{queued} queued for the next run"] if queued else []
    if lane.last_result is not None:
        facts.append(f"last result: {last_result_words(lane.last_result)}")
    return safe_text(lane.name, longest=30, style="green"), safe_text("; ".join(facts), longest=LONGEST_VALUE)


def _print_operation(console: Console, operation: OpenOperation, shorten: ShortIds) -> None:
    meta, standing = operation.meta, operation.standing
    where = "" if meta is None else f" on lane {meta.lane}, since {at_time(meta.started_at)}"
    kind = type(operation.state).__struct_config__.tag
    rows = [
        ("what", f"{kind} {shorten(operation.id)}{where}"),
        ("phase", standing.phase),
        *(("reserved", f"{shorten(reserved.id)} for {reserved.purpose}") for reserved in standing.reserved),
        *(("resume()", f"{number}. {step}") for number, step in enumerate(standing.resume, 1)),
    ]
    cells, before = [], ""
    for name, text in rows:
        shown = Text("" if name == before else name, style="bold")
        cells.append((shown, safe_text(text, longest=2 * LONGEST_VALUE)))
        before = name
    print_rows(console, cells)


# --- registers and ledger ---------------------------------------------------------------------------------------


def _print_registers(console: Console, inspection: Inspection, shorten: ShortIds, *, everything: bool) -> None:
    shown = inspection.registers if everything else inspection.registers[:_MOST_ROWS]
    for register in shown:
        text = Text.assemble(
            (f"  {register.seq:>5} ", "dim"),
            (register.namespace.name, "bold"),
            ("/", "dim"),
            safe_text(shorten.within(register.key), longest=80),
            " ",
            safe_text(
                shorten.within(value_words(register.value)[: 4 * LONGEST_VALUE]), longest=LONGEST_VALUE, style="dim"
            ),
        )
        console.print(_line(console, text))
    _print_rest(console, len(inspection.registers) - len(shown))


def print_ledger(
    console: Console, inspection: Inspection, shorten: ShortIds | None = None, *, everything: bool = True
) -> None:
    """Print the ledger's rows and their total."""
    shorten = ShortIds(_ids(inspection)) if shorten is None else shorten
    shown = inspection.usage if everything else inspection.usage[:_MOST_ROWS]
    for row in shown:
        about = "" if isinstance(row.entry_id, UnsetType) else f" for {shorten(row.entry_id)}"
        by_hand = ", entered by hand" if row.adjustment else ""
        line = Text.assemble((f"  {row.seq:>5} ", "dim"), safe_text(shorten(row.id), longest=40, style="cyan"))
        line.append_text(safe_text(f"{about}{by_hand}: {usage_words(row.usage)}", longest=LONGEST_VALUE))
        console.print(_line(console, line))
    _print_rest(console, len(inspection.usage) - len(shown))
    stats = inspection.stats
    total = f"  total  {_count(stats.message_count, 'message', 'messages')}; {usage_words(stats.usage)}"
    console.print(_line(console, safe_text(total, longest=LONGEST_VALUE, style="bold")))


def _print_rest(console: Console, count: int) -> None:
    if count:
        console.print(Text(f"        … {count:,} more (--all)", style="dim"))
