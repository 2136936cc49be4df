"""When two reached states are one: minted ids are symmetric, and sequence numbers and timestamps are forgotten."""

import json
import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from restartpoint_reference.shapes import Json
from restartpoint_reference.store import State
from restartpoint_reference.vocabulary.entries import Namespace

_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
"""A minted id (§1.2)."""

_OF_LANES: Final = (Namespace.LANE_STATE, Namespace.LANE_LEAF, Namespace.LANE_CONFIG, Namespace.LANE_LAST_RESULT)


def fingerprint(state: State, *beside: Json) -> bytes:
    """Equal only for states that differ in nothing but minted ids, sequence numbers and timestamps.

    ``beside`` holds what tells them apart besides. Ids are numbered by first appearance: lanes and their branches, then
    what those name, so that hardly any id decides its own number.
    """
    numbers: dict[str, str] = {}
    branched: set[str] = set()
    digest = blake2b(_anonymous(_lanes(state, branched), numbers), digest_size=16)
    digest.update(_anonymous(_rest(state, branched, numbers), numbers))
    digest.update(_anonymous(list(beside), numbers))
    return digest.digest()


def _anonymous(parts: Json, numbers: dict[str, str]) -> bytes:
    text = json.dumps(parts, separators=(",", ":"))
    return _ID.sub(lambda found: numbers.setdefault(found[0], f"#{len(numbers)}"), text).encode()


def _lanes(state: State, branched: set[str]) -> Json:
    """The lanes by name, each with its branch from the leaf up; ``branched`` gets the entries that these hold."""
    made: list[Json] = []
    for lane in state.keys(Namespace.LANE_STATE):
        made.extend(_register(state, namespace, lane) for namespace in _OF_LANES)
        key = state.value(Namespace.LANE_LEAF, lane)
        while isinstance(key, str) and key not in branched:
            branched.add(key)
            made.append(_entry(state, key))
            key = state.entries[key].parent_id
    return made


def _rest(state: State, branched: set[str], numbers: dict[str, str]) -> Json:
    """The other registers, the entries of other branches, and the ledger."""
    made: list[Json] = []
    for namespace in Namespace:
        if namespace not in _OF_LANES:
            made.extend(_register(state, namespace, key) for key in _numbered(state.namespaces[namespace], numbers))
    made.extend(_entry(state, key) for key in _numbered(state.entries.keys() - branched, numbers))
    rows = sorted(state.usage.values(), key=lambda row: (str(row.entry_id), row.seq))
    made.extend(row.to_json() | {"seq": 0} for row in rows)
    return made


def _register(state: State, namespace: Namespace, key: str) -> Json:
    found = state.register(namespace, key)
    return [namespace.value, key] if found is None else [namespace.value, key, found.value]


def _entry(state: State, key: str) -> Json:
    entry = state.entries[key]
    return ["entry", entry.id, entry.parent_id, entry.type.value, str(entry.custom_type), entry.payload]


def _numbered(keys: Iterable[str], numbers: dict[str, str]) -> list[str]:
    """The keys in the order of the numbers that their ids have by now, the others after them as they are."""
    return sorted(keys, key=lambda key: [numbers.get(part, part).rjust(40, "~") for part in key.split(":")])
