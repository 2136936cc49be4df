"""Modules with other code than their file has: in the process that asks for it, and nowhere else."""

import ast
import gc
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Final

HIT: Final = "__mutants_hit__"
DERIVED_FROM: Final = frozenset({"id", "name", "phases", "takes_lane", "section", "summary", "public", "inputs"})
"""Fields of a transition from which tables, tests and pages are made while modules are imported."""


class CannotPatch(Exception):
    """The code of a module that is already imported cannot be exchanged; import it anew instead."""


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType, names: Mapping[str, object]) -> None:
        super().__init__(name, path)
        self._code, self._names = code, names

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the name that importlib uses
        return self._code

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self._names)
        super().exec_module(module)


class Instead(MetaPathFinder):
    """Finds these modules with this code, and with these names already in them."""

    def __init__(self, codes: Mapping[str, tuple[Path, CodeType]], names: Mapping[str, object]) -> None:
        self._codes, self._names = codes, names

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname not in self._codes:
            return None
        file, code = self._codes[fullname]
        return spec_from_file_location(fullname, file, loader=_Loader(fullname, str(file), code, self._names))


def import_instead(codes: Mapping[str, tuple[Path, CodeType]], names: Mapping[str, object] | None = None) -> None:
    """From now on these modules are imported with this code; none of them may be imported yet."""
    early = [name for name in codes if name in sys.modules]
    if early:
        raise RuntimeError(f"imported too early: {', '.join(early)}")
    sys.meta_path.insert(0, Instead(codes, names or {}))


# --- which functions are called


def instrumented(source: str, module: str, path: Path) -> CodeType:
    """The module's code, of which every function first reports itself as ``module:line`` to ``HIT``."""
    return compile(ast.fix_missing_locations(_Reporting(module).visit(ast.parse(source))), str(path), "exec")


class _Reporting(ast.NodeTransformer):
    def __init__(self, module: str) -> None:
        self._module = module

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        report = ast.parse(f"{HIT}({function_key(self._module, node.lineno)!r})").body
        after = 1 if ast.get_docstring(node, clean=False) is not None else 0
        node.body[after:after] = [ast.copy_location(one, node.body[0]) for one in report]
        return node


def function_key(module: str, line: int) -> str:
    """The name of a function in a record of calls."""
    return f"{module}:{line}"


def functions_named(source: str, module: str, names: Iterable[str]) -> set[str]:
    """The keys of the functions with these names, and of those inside them."""
    wanted = frozenset(names)
    return {
        function_key(module, inner.lineno)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name in wanted
        for inner in ast.walk(node)
        if isinstance(inner, ast.FunctionDef)
    }


# --- in functions that are already there


def functions_of(path: Path) -> list[FunctionType]:
    """Every living function whose code comes from this file."""
    name = str(path)
    return [one for one in gc.get_objects() if isinstance(one, FunctionType) and one.__code__.co_filename == name]


def patch(functions: Iterable[FunctionType], source: str, mutated: str, path: Path) -> None:
    """Every living function gets the code that it has in the mutated source."""
    changes = dict(_pairs(compile(source, str(path), "exec"), compile(mutated, str(path), "exec")))
    affected = [function for function in functions if function.__code__ in changes]
    if not affected:
        raise CannotPatch(f"no living function of {path} changes")
    for function in affected:
        try:
            function.__code__ = changes[function.__code__]
        except ValueError as error:
            raise CannotPatch(str(error)) from None


def redecorate(source: str, mutated: str, path: Path, line: int) -> None:
    """The object that a decorator made of the definition at this line gets the fields that the mutated one gives it.

    Only where nothing was derived from a field that changes.
    """
    before, after = (_decorated(text, line) for text in (source, mutated))
    module = next(one for one in list(sys.modules.values()) if getattr(one, "__file__", None) == str(path))
    old = getattr(module, before.name)
    made = dict(vars(module))
    exec(compile(ast.Module(body=[after], type_ignores=[]), str(path), "exec"), made)
    new = made[before.name]
    for field in fields(old):
        if field.name in DERIVED_FROM and getattr(old, field.name) != getattr(new, field.name):
            raise CannotPatch(f"the table is derived from {field.name}")
        object.__setattr__(old, field.name, getattr(new, field.name))


def _decorated(source: str, line: int) -> ast.FunctionDef:
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and any(
            one.lineno <= line <= (one.end_lineno or one.lineno) for one in node.decorator_list
        ):
            return node
    raise CannotPatch(f"no decorator at line {line}")


def _pairs(one: CodeType, other: CodeType) -> Iterable[tuple[CodeType, CodeType]]:
    inner, outer = ([const for const in code.co_consts if isinstance(const, CodeType)] for code in (one, other))
    if [code.co_qualname for code in inner] != [code.co_qualname for code in outer]:
        raise CannotPatch(f"{one.co_qualname} has other functions inside")
    for before, after in zip(inner, outer, strict=True):
        if before != after:
            yield before, after
            yield from _pairs(before, after)
