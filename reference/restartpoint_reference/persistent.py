"""Maps that share structure: a changed copy costs the depth of a path, not the size of the map.

A hash trie. A node is a tuple of sixteen slots; a slot is empty, a node, or a bucket of (key, value) pairs whose hashes
agree so far. Iteration order is that of hashes and means nothing: whoever needs an order sorts.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeAlias, TypeVar, cast, overload

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_BITS: Final = 4
_MASK: Final = 15
_DEPTH: Final = 60
"""Where the bits of a hash are used up; deeper, a bucket holds every pair."""


class _Bucket(tuple[tuple[object, object], ...]):
    __slots__ = ()


_Slot: TypeAlias = "None | _Bucket | tuple[object, ...]"
_EMPTY: Final[tuple[object, ...]] = (None,) * 16


class PersistentMap(Mapping[K, V], Generic[K, V]):
    """An immutable mapping; ``set`` and ``remove`` return another that shares nearly all of this one."""

    __slots__ = ("_root", "_size")

    def __init__(self, root: tuple[object, ...] = _EMPTY, size: int = 0) -> None:
        self._root = root
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, key: K) -> V:
        for held, value in self._bucket(key):
            if held == key:
                return cast("V", value)
        raise KeyError(key)

    @overload
    def get(self, key: K, default: None = None) -> V | None: ...
    @overload
    def get(self, key: K, default: V | T) -> V | T: ...
    def get(self, key: K, default: V | T | None = None) -> V | T | None:
        """The value of the key, or the default."""
        code = hash(key)  # as in `_bucket`: asked too often for another call
        slot: object = self._root
        while type(slot) is tuple:
            slot = slot[code & _MASK]
            code >>= _BITS
        if slot is not None:
            for held, value in cast("_Bucket", slot):
                if held == key:
                    return cast("V", value)
        return default

    def __contains__(self, key: object) -> bool:
        for held, _ in self._bucket(key):  # noqa: SIM110 - asked too often for a generator
            if held == key:
                return True
        return False

    def _bucket(self, key: object) -> tuple[tuple[object, object], ...]:
        """The pairs among which the key would be."""
        code = hash(key)
        slot: object = self._root
        while type(slot) is tuple:  # a node, and not a bucket, which is of a type of its own
            slot = slot[code & _MASK]
            code >>= _BITS
        return slot if isinstance(slot, _Bucket) else ()

    def __iter__(self) -> Iterator[K]:
        return (cast("K", key) for key, _ in _pairs(self._root))

    def set(self, key: K, value: V) -> "PersistentMap[K, V]":
        """This map with the key holding the value."""
        root, added = _set(self._root, hash(key), 0, key, value)
        return PersistentMap(root, self._size + added)

    def remove(self, key: K) -> "PersistentMap[K, V]":
        """This map without the key; itself when the key is absent."""
        if key not in self:
            return self
        return PersistentMap(_remove(self._root, hash(key), key), self._size - 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


def _pairs(node: tuple[object, ...]) -> Iterator[tuple[object, object]]:
    for slot in node:
        if isinstance(slot, _Bucket):
            yield from slot
        elif slot is not None:
            yield from _pairs(cast("tuple[object, ...]", slot))


def _with(node: tuple[object, ...], at: int, slot: object) -> tuple[object, ...]:
    return (*node[:at], slot, *node[at + 1 :])


def _set(node: tuple[object, ...], code: int, depth: int, key: object, value: object) -> tuple[tuple[object, ...], int]:
    at = code & _MASK
    slot = cast("_Slot", node[at])
    if slot is None:
        return _with(node, at, _Bucket(((key, value),))), 1
    if isinstance(slot, _Bucket):
        others = _Bucket(pair for pair in slot if pair[0] != key)
        if len(others) < len(slot) or depth >= _DEPTH:
            return _with(node, at, _Bucket((*others, (key, value)))), 1 - (len(slot) - len(others))
        deeper = _EMPTY
        for held, kept in slot:
            deeper, _ = _set(deeper, hash(held) >> (depth + _BITS), depth + _BITS, held, kept)
        slot = deeper
    made, added = _set(slot, code >> _BITS, depth + _BITS, key, value)
    return _with(node, at, made), added


def _remove(node: tuple[object, ...], code: int, key: object) -> tuple[object, ...]:
    at = code & _MASK
    slot = cast("_Slot", node[at])
    if isinstance(slot, _Bucket):
        others = _Bucket(pair for pair in slot if pair[0] != key)
        return _with(node, at, others or None)
    return node if slot is None else _with(node, at, _remove(slot, code >> _BITS, key))
