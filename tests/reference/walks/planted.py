"""A state that a walk could not have come to by transitions, because some register was set from elsewhere."""

from restartpoint_reference import Json, Namespace, SetRegister, apply
from tests.reference.walk import Walk


def plant(walk: Walk, *registers: tuple[Namespace, str, Json]) -> Walk:
    """The walk with these registers set."""
    writes = [SetRegister(namespace=namespace, key=key, value=value) for namespace, key, value in registers]
    applied = apply(walk.state, writes, timestamp=1)
    assert isinstance(applied, tuple), applied
    walk.state = applied[0]
    return walk
