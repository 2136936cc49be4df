"""Deferred handles: when two are equal (§3.2)."""

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from ci.prove.contract import proves
from restartpoint_reference.classify import handles_are_equal
from restartpoint_reference.shapes import UNSET, Json, Unset

__all__: list[str] = []


class Field(Enum):
    """A value of a handle's field; some are equal in Python and different in JSON."""

    TEXT = "text"
    ONE = "one"
    TRUE = "true"
    FLOAT = "float"

    @property
    def json(self) -> Json:
        """The value itself."""
        match self:
            case Field.TEXT:
                return "job"
            case Field.ONE:
                return 1
            case Field.TRUE:
                return True
            case Field.FLOAT:
                return 1.0


Handles: TypeAlias = Callable[[Json | Unset, Json | Unset], bool]


def _handle(id: Field, model: Field, turned: bool) -> Json:
    """A handle of these two fields, whose keys stand in one order or the other."""
    return {"modelId": model.json, "id": id.json} if turned else {"id": id.json, "modelId": model.json}


def _python_equality(one: Json | Unset, other: Json | Unset) -> bool:
    """Handles are compared as Python compares: 1, 1.0 and true are one value."""
    return one is not UNSET and other is not UNSET and one == other


@proves(
    handles_are_equal,
    section="3.2",
    twin=_python_equality,
    symbolic="two handles of two fields in either order of keys; a field is a text, 1, true or 1.0",
    fixed="which two fields; both handles are present",
)
def handles_are_equal_field_by_field(
    equal: Handles, id: Field, model: Field, other_id: Field, other_model: Field, turned: bool
) -> bool:
    """Two handles are equal if and only if every field is of the same JSON value, in whatever order."""
    found = equal(_handle(id, model, False), _handle(other_id, other_model, turned))
    return found == (id is other_id and model is other_model)


def _forgiving_numbers(one: Json | Unset, other: Json | Unset) -> bool:
    """A number that is 1 agrees with true on the other side, but not the other way round."""
    if isinstance(one, dict) and isinstance(other, dict) and other.get("id") is True:
        return handles_are_equal({**one, "id": one.get("id") == 1}, other)
    return handles_are_equal(one, other)


@proves(
    handles_are_equal,
    section="3.2",
    twin=_forgiving_numbers,
    symbolic="three handles, each absent or with an id that is a text, 1, true or 1.0, in either order of keys",
    fixed="the model of all three",
)
def equality_of_handles_is_an_equivalence(
    equal: Handles, first: Field | None, second: Field | None, third: Field | None, turned: bool
) -> bool:
    """A present handle equals itself, equality holds both ways, and what equals the same is equal; absence is not."""
    one: Json | Unset = UNSET if first is None else _handle(first, Field.TEXT, False)
    two: Json | Unset = UNSET if second is None else _handle(second, Field.TEXT, turned)
    three: Json | Unset = UNSET if third is None else _handle(third, Field.TEXT, False)
    reflexive = equal(one, one) == (one is not UNSET)
    symmetric = equal(one, two) == equal(two, one)
    return reflexive and symmetric and (equal(one, three) or not (equal(one, two) and equal(two, three)))
