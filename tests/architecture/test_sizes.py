"""Modules and functions stay small enough to be read whole, or say why they are not."""

from tests.architecture.exceptions import LONG_FUNCTIONS, LONG_MODULES
from tests.architecture.rules import LONGEST_FUNCTION, LONGEST_MODULE, function_lengths, module_length
from tests.architecture.sources import parse, sources


def test_a_module_over_the_limit_has_a_reason_and_each_reason_is_needed() -> None:
    long = {source.name for source in sources() if module_length(source) > LONGEST_MODULE}
    assert long == LONG_MODULES.keys()


def test_a_function_over_the_limit_has_a_reason_and_each_reason_is_needed() -> None:
    lengths = {name: length for source in sources() for name, length in function_lengths(source).items()}
    assert {name for name, length in lengths.items() if length > LONGEST_FUNCTION} == LONG_FUNCTIONS.keys()


def test_the_rule_counts_a_function_without_its_docstring() -> None:
    text = 'class A:\n    async def f(self):\n        """One.\n\n        Two."""\n        x = 1\n        return x\n'
    assert function_lengths(parse(text)) == {"restartpoint.example:A.f": 3}


def test_the_rule_sees_nested_functions() -> None:
    lengths = function_lengths(parse("def outer():\n    if True:\n        def inner():\n            pass\n"))
    assert lengths == {"restartpoint.example:outer": 4, "restartpoint.example:outer.inner": 2}
