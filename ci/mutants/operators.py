"""Which of cosmic-ray's operators make mutants here, and why the others do not."""

from collections.abc import Mapping
from typing import Final

from cosmic_ray.operators.operator import Operator  # type: ignore[import-untyped]
from cosmic_ray.plugins import get_operator, operator_names  # type: ignore[import-untyped]

LEFT_OUT: Final[Mapping[str, str]] = {
    "RemoveDecorator": "a transition, dataclass or property without its decorator breaks at once: it would only swell"
    " the score",
    "VariableReplacer": "it replaces by random numbers, so no two runs would agree",
    "VariableInserter": "it inserts random operations, so no two runs would agree",
    "ReplaceComparisonOperator_Is_Eq": "of enumeration members and UNSET, identity is equality",
    "ReplaceComparisonOperator_IsNot_NotEq": "of enumeration members and UNSET, identity is equality",
    "ReplaceComparisonOperator_Eq_Is": "whether equal text is one object depends on the interpreter",
    "ReplaceComparisonOperator_NotEq_IsNot": "whether equal text is one object depends on the interpreter",
}
"""Operators that are never applied."""

CHOSEN_COMPARISONS: Final = frozenset({
    "Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is",
    "Lt_GtE", "Lt_LtE", "LtE_Gt", "LtE_Lt", "Gt_LtE", "Gt_GtE", "GtE_Lt", "GtE_Gt",
})  # fmt: skip
"""Of the replacements of a comparison, its negation and the neighbour at its boundary."""

CHOSEN_ARITHMETIC: Final = frozenset({
    "Add_Sub", "Sub_Add", "Mul_Add", "Div_Mul", "FloorDiv_Mul", "Mod_Mul", "Pow_Mul", "RShift_LShift",
    "LShift_RShift", "BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitAnd",
})  # fmt: skip
"""Of the eleven replacements of a binary operator, one."""


def operators(*, every: bool = False) -> dict[str, Operator]:
    """The operators by name; with ``every``, all replacements at a place and not only the chosen ones."""
    return {
        name: get_operator(full)()
        for full in operator_names()
        if (name := full.partition("/")[2]) not in LEFT_OUT and (every or _is_chosen(name))
    }


def _is_chosen(name: str) -> bool:
    kind, _, replacement = name.partition("_")
    match kind:
        case "ReplaceComparisonOperator":
            return replacement in CHOSEN_COMPARISONS
        case "ReplaceBinaryOperator":
            return replacement in CHOSEN_ARITHMETIC
        case _:
            return True
