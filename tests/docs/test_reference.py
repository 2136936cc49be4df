"""The reference pages name what the code has, and the table of transitions keeps to one vocabulary."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from restartpoint.contract import (
    AgentTool,
    AssistantEvent,
    Model,
    ModelIdentity,
    ModelRequest,
    Replay,
    StopReason,
    ThinkingLevel,
    ToolContext,
    ToolDeclaration,
    ToolResult,
    image_block,
    text_block,
    user_message,
    zero_usage,
)
from restartpoint_reference import TRANSITIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"
STRUCTS: tuple[type[msgspec.Struct], ...] = (
    ModelIdentity, Model, ModelRequest, ToolDeclaration, AssistantEvent, ToolResult, ToolContext,
)  # fmt: skip
WRITE = re.compile(r"\d+\. (insert|set|delete|TERMINAL\b|same writes as T\d+)")


def page() -> str:
    return (DOCS / "reference" / "types.md").read_text(encoding="utf-8")


def row(text: str, name: str) -> set[str]:
    """The words in code of the table row that begins with this name."""
    (line,) = re.findall(rf"^\| `{name}`.*$", text, re.MULTILINE)
    return {word.removesuffix("?") for word in re.findall(r"`([^`]+)`", line)}


@pytest.mark.covers("ST-0.7-11")
def test_the_page_of_types_lists_every_field_of_messages_usage_models_and_tools() -> None:
    text = page()
    for struct in STRUCTS:
        assert set(struct.__struct_fields__) <= row(text, struct.__name__), struct
    assert {name for name in vars(AgentTool) if not name.startswith("_")} <= row(text, "AgentTool")
    assert user_message("x", 1).keys() - {"role"} <= row(text, "user")
    assert text_block("x").keys() <= row(text, "text")
    assert image_block("x", "image/png").keys() <= row(text, "image")
    cost = zero_usage()["cost"]
    assert isinstance(cost, dict)
    words = set(re.findall(r"`([^`]+)`", text))
    assert {*zero_usage(), *cost, *get_args(StopReason), *get_args(ThinkingLevel), *get_args(Replay)} <= words


@pytest.mark.covers("ST-0.7-01")
def test_every_write_of_the_table_of_transitions_is_an_insert_a_set_or_a_delete() -> None:
    table = (DOCS / "requirements" / "transitions.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in table.splitlines() if re.match(r"\| [TS]\d+b? \|", line)]
    written = {cells[1].strip("`"): cells[5 if cells[0].startswith("| T") else 3].split("<br>") for cells in rows}
    assert TRANSITIONS.keys() <= written.keys()
    wrong = [(name, write) for name, writes in written.items() for write in writes if not named(write)]
    assert wrong == []


def named(write: str) -> bool:
    return write == "none" or WRITE.match(write) is not None
