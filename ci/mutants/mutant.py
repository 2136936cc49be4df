"""The mutants of one module: each the same text with one small fault."""

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from cosmic_ray.ast import ast_nodes, get_ast  # type: ignore[import-untyped]
from cosmic_ray.operators.operator import Operator  # type: ignore[import-untyped]
from parso.tree import BaseNode, Leaf, NodeOrLeaf

from ci.mutants.own import Edit, own_edits
from ci.mutants.project import Project


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One fault: ``text`` stands for what lies between two offsets of the source.

    ``owner`` is the definition that it lies in, decorators included; ``function`` the first line of the innermost
    function in whose body it lies, None for what runs when the module is imported.
    """

    module: str
    line: int
    owner: str
    function: int | None
    named: tuple[str, ...] = ()
    """In a decorator of a function: the names that stand in it; without the fault, only their code is affected."""
    operator: str
    before: str
    after: str
    start: int
    end: int
    text: str

    @classmethod
    def nothing(cls, module: str) -> "Mutant":
        """The sound source, to see that the tests pass under the conditions of a trial."""
        return cls(
            module=module, line=1, owner="", function=None, operator="", before="", after="", start=0, end=0, text=""
        )

    def applied(self, source: str) -> str:
        """The source with the fault."""
        return source[: self.start] + self.text + source[self.end :]

    def to_json(self) -> dict[str, object]:
        """All fields by name."""
        return asdict(self)


def mutants(project: Project, module: str, chosen: dict[str, Operator]) -> tuple[Mutant, ...]:
    """The different mutants of a module, in the order of its text.

    Left out is what is no Python, what changes nothing but type hints, and what says the same as the source or as an
    earlier mutant in other words (``not a is b`` and ``a is not b``).
    """
    source = project.source(module)
    places, found = _Places(source), list[Mutant]()
    known = {_meaning(source)}
    for name, start, end, text in sorted((*_edits(source, chosen), *own_edits(source)), key=lambda edit: edit[1:]):
        changed = source[:start] + text + source[end:]
        meaning = _meaning(changed)
        if meaning is None or meaning in known:
            continue
        known.add(meaning)
        line = source.count("\n", 0, start) + 1
        column = start - (source.rfind("\n", 0, start) + 1)
        before, after = _first_difference(source, changed)
        found.append(
            Mutant(
                module=module, line=line, owner=places.owner(line), function=places.function(line, column),
                named=places.named(line),
                operator=name, before=before, after=after, start=start, end=end, text=text,
            )
        )  # fmt: skip
    return tuple(found)


def _edits(source: str, chosen: dict[str, Operator]) -> Iterator[Edit]:
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    for node in ast_nodes(get_ast(source)):
        for name, operator in chosen.items():
            for index, _ in enumerate(list(operator.mutation_positions(node))):
                start, end = (offsets[line - 1] + column for line, column in (node.start_pos, node.end_pos))
                yield name, start, end, _mutated(node, operator, index)


def _mutated(node: NodeOrLeaf, operator: Operator, index: int) -> str:
    """The text of the mutated node; the tree is left as it was, although operators change it in place."""
    inner = list(ast_nodes(node))
    children = [(one, list(one.children)) for one in inner if isinstance(one, BaseNode)]
    values = [(one, one.value) for one in inner if isinstance(one, Leaf)]
    text: str = operator.mutate(node, index).get_code(include_prefix=False)
    for parent, had in children:
        parent.children = had
    for leaf, value in values:
        leaf.value = value
    return text


def _first_difference(source: str, changed: str) -> tuple[str, str]:
    pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
    return next((one.strip(), other.strip()) for one, other in pairs if one != other)


# --- what a mutant says


def _meaning(source: str) -> str | None:
    """The syntax tree without type hints and in one wording, as text; None for what is no Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            compile(source, "mutant", "exec")
            return ast.dump(_Wording().visit(ast.parse(source)))
        except SyntaxError:
            return None


_OPPOSITES: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip


class _Wording(ast.NodeTransformer):
    """One wording for negations; nothing for type hints."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=ast.Compare(left=left, ops=[op], comparators=others)):
                if (opposite := _OPPOSITES.get(type(op))) is not None:
                    return ast.Compare(left=left, ops=[opposite()], comparators=others)
        return node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if "TYPE_CHECKING" in ast.dump(node.test):
            return None
        self.generic_visit(node)
        node.test = _undoubled(node.test)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        node.test = _undoubled(node.test)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        match node.value:
            case ast.Call(func=ast.Name(id="TypeVar")):
                return None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias":
            node.value = None
        node.annotation = ast.Constant(value=None)
        return self.generic_visit(node)


def _undoubled(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=ast.UnaryOp(op=ast.Not(), operand=inner)):
            return inner
    return test


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


class _Places:
    """Which definition a place of the source lies in."""

    def __init__(self, source: str) -> None:
        self._owners: list[tuple[int, int, str]] = []
        self._bodies: list[tuple[tuple[int, int], tuple[int, int], int]] = []
        self._decorators: list[tuple[int, int, tuple[str, ...]]] = []
        self._walk(ast.parse(source), "")

    def _walk(self, node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                self._owners.append((first, child.end_lineno or first, name))
                name += "."
            if isinstance(child, ast.FunctionDef):
                begin, last = child.body[0], child.body[-1]
                span = (begin.lineno, begin.col_offset), (last.end_lineno or 0, last.end_col_offset or 0)
                self._bodies.append((*span, child.lineno))
                self._decorators += [
                    (one.lineno, one.end_lineno or one.lineno, tuple(sorted(_names(one))))
                    for one in child.decorator_list
                ]
            self._walk(child, name)

    def owner(self, line: int) -> str:
        """The innermost definition of this line, decorators included."""
        names = [name for first, last, name in self._owners if first <= line <= last]
        return names[-1] if names else "<module>"

    def named(self, line: int) -> tuple[str, ...]:
        """The names in the decorator of a function that the line lies in."""
        return next((names for first, last, names in self._decorators if first <= line <= last), ())

    def function(self, line: int, column: int) -> int | None:
        """The line of the innermost function in whose body the place lies."""
        lines = [first for begin, end, first in self._bodies if begin <= (line, column) <= end]
        return lines[-1] if lines else None
