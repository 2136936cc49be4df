"""Durable types as types: which structs a namespace can hold, and strategies that make any value of a type."""

import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from restartpoint.contract import (
    MAX_SAFE_INTEGER,
    NAMESPACES,
    UNSET,
    BranchSummaryPayload,
    CompactionPayload,
    CustomPayload,
    EntryDraft,
    MessagePayload,
    Namespace,
    NavigationPhase,
    NavigationState,
    StructuralDecision,
    UnsetType,
    UsageDraft,
)  # fmt: skip

__all__ = [
    "drafts", "json_objects", "json_values", "reachable_structs", "registers", "texts", "usage_drafts", "values_of",
]  # fmt: skip

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
integers = st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | integers | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)


def reachable_structs() -> set[type[msgspec.Struct]]:
    """Every struct that a register can hold, at any depth."""
    found: set[type[msgspec.Struct]] = set()
    pending: list[object] = [namespace.type for namespace in NAMESPACES.values()]
    while pending:
        for kind in structs_in(pending.pop()):
            if kind not in found:
                found.add(kind)
                pending.extend(get_type_hints(kind).values())
    return found


def structs_in(annotation: object) -> Iterator[type[msgspec.Struct]]:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        yield annotation
    for argument in get_args(annotation):
        yield from structs_in(argument)


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Any value of a durable type, but none of an absent field."""
    origin = get_origin(annotation)
    if annotation is Any:
        return json_values
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(kind) for kind in get_args(annotation) if kind is not UnsetType])
    if origin is Literal:
        return st.sampled_from(get_args(annotation))
    if origin is list:
        return st.lists(values_of(get_args(annotation)[0]), max_size=2)
    if origin is dict:
        return json_objects
    if annotation is StructuralDecision:
        return st.deferred(structural_decisions)
    if annotation is NavigationState:
        return st.deferred(navigations)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return structs(annotation)
    return {str: texts, int: integers, bool: st.booleans(), type(None): st.none()}[annotation]


def structs(kind: type[msgspec.Struct], **fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a struct; optional fields are absent as often as not."""
    hints = get_type_hints(kind)
    fields = {
        field.name: absent_or(values_of(hints[field.name])) if field.default is UNSET else values_of(hints[field.name])
        for field in msgspec.structs.fields(kind)
    }
    return st.builds(kind, **{**fields, **fixed})


def absent_or(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.just(UNSET) | strategy


def structural_decisions() -> st.SearchStrategy[StructuralDecision]:
    generation = get_type_hints(StructuralDecision)["generation"]
    return structs(StructuralDecision, status=st.just("deciding"), generation=st.just(UNSET)) | structs(
        StructuralDecision, status=st.just("generating"), generation=values_of(generation)
    )


def navigations() -> st.SearchStrategy[NavigationState]:
    plain = structs(
        NavigationState, summarize=st.just(False), custom_instructions=st.just(UNSET),
        phase=st.just(NavigationPhase(kind="ready_to_commit")),
    )  # fmt: skip
    summary = st.builds(NavigationPhase, kind=st.just("summary"), structural=st.deferred(structural_decisions))
    return plain | structs(NavigationState, summarize=st.just(True), target_id=texts, phase=summary)


def registers() -> st.SearchStrategy[tuple[Namespace[Any], Any]]:
    """A namespace with any value that it can hold."""
    return st.sampled_from(sorted(NAMESPACES)).flatmap(
        lambda name: st.tuples(st.just(NAMESPACES[name]), values_of(NAMESPACES[name].type))
    )


def drafts() -> st.SearchStrategy[EntryDraft]:
    """Entries of every kind, unknown payload fields included."""
    extra = st.dictionaries(texts.map(lambda key: "x" + key), json_values, max_size=2)
    optional = {"details": absent_or(json_values), "usage": absent_or(json_objects)}
    payloads = st.one_of(
        st.builds(MessagePayload, message=json_objects, terminate=st.booleans(), extra=extra),
        st.builds(
            CompactionPayload, summary=texts, retained_tail=st.lists(json_objects, max_size=2), tokens_before=integers,
            from_hook=st.booleans(), extra=extra, **optional,
        ),
        st.builds(
            BranchSummaryPayload, from_id=texts, summary=texts, from_hook=st.booleans(), extra=extra, **optional
        ),
        st.builds(CustomPayload, custom_type=texts, data=absent_or(json_values), extra=extra),
    )  # fmt: skip
    return st.builds(EntryDraft, id=texts, parent_id=st.none() | texts, payload=payloads)


def usage_drafts() -> st.SearchStrategy[UsageDraft]:
    return st.builds(
        UsageDraft, id=texts, usage=json_objects, adjustment=st.booleans(), entry_id=absent_or(texts),
        details=absent_or(json_values),
    )  # fmt: skip
