"""JSON values and the maps of a state: equality, differences, and changed copies (§0.7, §1.1)."""

from collections.abc import Callable
from enum import Enum, IntEnum
from typing import Final, TypeAlias

from ci.prove.contract import proves
from restartpoint_reference.persistent import PersistentMap
from restartpoint_reference.shapes import Json, JsonObject, differences, same

__all__: list[str] = []

# --- JSON


class Leaf(Enum):
    """A JSON value without parts; the first three are equal in Python."""

    ONE = "one"
    TRUE = "true"
    FLOAT = "float"
    NULL = "null"

    @property
    def json(self) -> Json:
        """The value itself."""
        match self:
            case Leaf.ONE:
                return 1
            case Leaf.TRUE:
                return True
            case Leaf.FLOAT:
                return 1.0
            case Leaf.NULL:
                return None


class Shape(Enum):
    """How a value is put together from leaves."""

    LEAF = "leaf"
    LIST = "list"
    OBJECT = "object"
    NESTED = "nested"

    def around(self, leaf: Leaf, *, extra: bool) -> Json:
        """The value of this shape; ``extra`` adds another part to it."""
        more: list[Json] = [None] if extra else []
        other: JsonObject = {"other": None} if extra else {}
        match self:
            case Shape.LEAF:
                return leaf.json
            case Shape.LIST:
                return [leaf.json, *more]
            case Shape.OBJECT:
                return {**other, "key": leaf.json}
            case Shape.NESTED:
                return {"key": [{"inner": leaf.json, **other}]}


VALUES = "two values of four leaves (1, true, 1.0, null) in four shapes, each with or without another part"

Same: TypeAlias = Callable[[Json, Json], bool]
Differences: TypeAlias = Callable[[Json, Json], tuple[str, ...]]


def _expected_keys_only(expected: Json, found: Json) -> tuple[str, ...]:
    """A key that only the found object has is no difference."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return differences(expected, {key: value for key, value in found.items() if key in expected})
    return differences(expected, found)


@proves(
    differences,
    section="0.7",
    twin=_expected_keys_only,
    symbolic=VALUES,
    fixed="the keys; depth three at most",
)
def differences_are_told_exactly_where_values_are_not_the_same(
    told: Differences, first: Leaf, shape: Shape, extra: bool, second: Leaf, other_shape: Shape, other_extra: bool
) -> bool:
    """Nothing is told if and only if the two values are the same."""
    one, other = shape.around(first, extra=extra), other_shape.around(second, extra=other_extra)
    return (told(one, other) == ()) == same(one, other)


def _python_equality(one: Json, other: Json) -> bool:
    """1, 1.0 and true are one value inside an array."""
    return one == other if isinstance(one, list) and isinstance(other, list) else same(one, other)


@proves(same, section="0.7", twin=_python_equality, symbolic=VALUES, fixed="the keys; depth three at most")
def values_are_the_same_exactly_when_built_alike(
    alike: Same, first: Leaf, shape: Shape, extra: bool, second: Leaf, other_shape: Shape, other_extra: bool
) -> bool:
    """Two values are the same if and only if they have the same leaf, shape and parts."""
    one, other = shape.around(first, extra=extra), other_shape.around(second, extra=other_extra)
    if shape is Shape.LEAF and other_shape is Shape.LEAF:
        return alike(one, other) == (first is second)
    return alike(one, other) == (first is second and shape is other_shape and extra == other_extra)


# --- maps


class Key(IntEnum):
    """Keys of a map: the first three share the first bits of their hash, two of them the next bits as well."""

    ZERO = 0x000
    FIRST = 0x010
    SECOND = 0x110
    OTHER = 0x001


Map: TypeAlias = PersistentMap[int, int]
Set: TypeAlias = Callable[[Map, int, int], Map]
Remove: TypeAlias = Callable[[Map, int], Map]

SET: Final[Set] = PersistentMap.set
REMOVE: Final[Remove] = PersistentMap.remove

HELD: Final[tuple[tuple[int, int], ...]] = ((0x000, 100), (0x010, 101), (0x110, 102), (0x001, 103))

MAPS = "which of four keys a map holds, three of which collide in their first hash bits; the key of the change"


def _held(zero: bool, first: bool, second: bool, other: bool) -> dict[int, int]:
    chosen = zip(HELD, (zero, first, second, other), strict=True)
    return {key: value for (key, value), held in chosen if held}


def _map(held: dict[int, int]) -> Map:
    made: Map = PersistentMap()
    for key, value in held.items():
        made = made.set(key, value)
    return made


def _counting_each_time(self: Map, key: int, value: int) -> Map:
    """A value that replaces another counts as one more."""
    changed = PersistentMap.set(self, key, value)
    return PersistentMap(changed._root, len(self) + 1)


@proves(
    SET,
    section="1.1",
    twin=_counting_each_time,
    symbolic=f"{MAPS}; every integer as its value",
    fixed="the four keys and the values that the map holds",
)
def setting_a_key_changes_that_key_alone(
    setting: Set, zero: bool, first: bool, second: bool, other: bool, key: Key, value: int
) -> bool:
    """The new map holds what the old one held and the key with its value; the old one holds what it held."""
    held = _held(zero, first, second, other)
    before = _map(held)
    after = setting(before, key.value, value)
    expected = {**held, key.value: value}
    return _is(after, expected) and _is(before, held)


def _removing_the_slot(self: Map, key: int) -> Map:
    """Every key goes that shares the first bits of the hash."""
    kept = {held: value for held, value in self.items() if held & 15 != key & 15}
    return _map(kept) if key in self else self


@proves(
    REMOVE,
    section="1.1",
    twin=_removing_the_slot,
    symbolic=MAPS,
    fixed="the four keys and the values that the map holds",
)
def removing_a_key_removes_that_key_alone(
    removing: Remove, zero: bool, first: bool, second: bool, other: bool, key: Key
) -> bool:
    """The new map holds what the old one held without the key; an absent key changes nothing; the old one stays."""
    held = _held(zero, first, second, other)
    before = _map(held)
    after = removing(before, key.value)
    expected = {one: value for one, value in held.items() if one != key.value}
    return _is(after, expected) and _is(before, held) and (key.value in held or after is before)


def _is(made: Map, expected: dict[int, int]) -> bool:
    """Whether the map holds exactly this, by every way to ask."""
    asked = all(key in made and made[key] == made.get(key) == value for key, value in expected.items())
    absent = all(key.value not in made for key in Key if key.value not in expected)
    return asked and absent and len(made) == len(expected) and sorted(made) == sorted(expected)
