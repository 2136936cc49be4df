"""The rules, as functions from one source to what is wrong with it. None of them reads a file."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator

from tests.architecture.sources import Source, in_package

__all__ = [
    "LONGEST_FUNCTION",
    "LONGEST_MODULE",
    "ambient_reads",
    "bad_names",
    "effect_starts",
    "export_problems",
    "function_lengths",
    "imported_modules",
    "loose_effect_starts",
    "module_length",
    "module_state",
    "nameless_ignores",
    "outward_calls",
    "root_imports",
    "third_party",
    "waits",
]

LONGEST_MODULE = 500
LONGEST_FUNCTION = 70

AMBIENT = re.compile(
    r"time\.(time|time_ns|monotonic|monotonic_ns|perf_counter|perf_counter_ns|sleep|localtime|gmtime)"
    r"|datetime\.(datetime\.(now|utcnow|today)|date\.today)"
    r"|(random|secrets|uuid)(\..*)?"
    r"|os\.(urandom|getrandom)"
    r"|anyio\.current_time"
)
BAD_WORDS = frozenset({"utils", "util", "misc", "common", "helpers", "helper", "manager"})
MUTABLE_CONSTRUCTORS = frozenset({"list", "dict", "set", "bytearray", "defaultdict", "deque", "OrderedDict", "Counter"})
OUTWARD_CALLS = frozenset({"open", "print", "input", "exec", "eval", "breakpoint", "__import__"})

type_of_function = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Every function with its qualified name, nested ones included."""
    pending: list[tuple[str, ast.AST]] = [("", tree)]
    while pending:
        prefix, node = pending.pop()
        for child in ast.iter_child_nodes(node):
            inner = f"{prefix}{child.name}." if isinstance(child, (*type_of_function, ast.ClassDef)) else prefix
            if isinstance(child, type_of_function):
                yield inner.rstrip("."), child
            pending.append((inner, child))


# --- sizes


def module_length(source: Source) -> int:
    """Lines of the file."""
    return len(source.text.splitlines())


def function_lengths(source: Source) -> dict[str, int]:
    """Lines of each function without its docstring, by `module:qualified name`; overloads count as the longest."""
    found: dict[str, int] = {}
    for name, node in functions(source.tree):
        key = f"{source.name}:{name}"
        found[key] = max(found.get(key, 0), _length(node))
    return found


def _length(node: Function) -> int:
    whole = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node, clean=False) is None:
        return whole
    docstring = node.body[0]
    return whole - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


# --- who imports what


def imported_modules(source: Source) -> set[str]:
    """The dotted names that a module imports, those under `TYPE_CHECKING` included."""
    found: set[str] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            found.add(node.module)
    return found


def third_party(source: Source, *allowed: str) -> set[str]:
    """The imported top-level names that are not among the allowed ones."""
    return {name.partition(".")[0] for name in imported_modules(source)} - set(allowed)


def root_imports(source: Source) -> list[str]:
    """Imports of the harness's public face from inside the harness, where only `cli` and `tui` may use it."""
    allowed = source.name == "restartpoint.__main__" or source.name.startswith(("restartpoint.cli", "restartpoint.tui"))
    uses = "restartpoint" in imported_modules(source)
    return [f"{source.name} imports from `restartpoint` itself; name the layer"] if uses and not allowed else []


def ambient_reads(source: Source) -> set[str]:
    """The clocks, ids and chances that a module reads directly instead of through `seams`."""
    meanings = _meanings(source.tree)
    dotted = (_dotted(node, meanings) for node in ast.walk(source.tree))
    used = {name for name in dotted if name is not None and AMBIENT.fullmatch(name)}
    return used | {name for name in meanings.values() if AMBIENT.fullmatch(name)}


def _meanings(tree: ast.Module) -> dict[str, str]:
    """What each imported local name stands for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return found


def _dotted(node: ast.AST, meanings: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return meanings.get(node.id)
    if isinstance(node, ast.Attribute) and (base := _dotted(node.value, meanings)) is not None:
        return f"{base}.{node.attr}"
    return None


def outward_calls(source: Source) -> set[str]:
    """Builtins that reach outside the program."""
    calls = (node.func for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    return {call.id for call in calls if isinstance(call, ast.Name) and call.id in OUTWARD_CALLS}


def is_standard(name: str) -> bool:
    """Whether a top-level module belongs to the standard library."""
    return name in sys.stdlib_module_names


# --- names


def bad_names(source: Source) -> list[str]:
    """Modules and classes that are named after nothing."""
    classes = [node.name for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
    words = [*source.name.split("."), *(word for name in classes for word in re.findall(r"[A-Z][a-z0-9]*", name))]
    return [f"{source.name}: {word}" for word in words if not BAD_WORDS.isdisjoint(word.lower().split("_"))]


def export_problems(source: Source) -> list[str]:
    """What is wrong with `__all__` of a package: missing, or not the names that the package binds from itself."""
    exported = _exported(source.tree)
    if exported is None:
        return [f"{source.name} has no literal __all__"]
    package = source.name.partition(".")[0]
    own, bound = set[str](), set[str]()
    for node in source.tree.body:
        names = _bound(node)
        bound |= names
        if not isinstance(node, ast.Import) and not (
            isinstance(node, ast.ImportFrom) and not in_package(node.module or package, package)
        ):
            own |= {name for name in names if not name.startswith("_")}
    twice = {name for name in exported if exported.count(name) > 1}
    return [
        *(f"{source.name} binds {name} but does not export it" for name in sorted(own - set(exported))),
        *(f"{source.name} exports {name} but does not bind it" for name in sorted(set(exported) - bound)),
        *(f"{source.name} exports {name} twice" for name in sorted(twice)),
    ]


def _exported(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.List | ast.Tuple):
                return [str(item.value) for item in value.elts if isinstance(item, ast.Constant)]
    return None


def _bound(node: ast.stmt) -> set[str]:
    match node:
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Assign():
            return {target.id for target in node.targets if isinstance(target, ast.Name)} - {"__all__"}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name} - {"__all__"}
        case _:
            return set()


# --- state


def module_state(source: Source) -> list[str]:
    """Module-level state: a `global` statement, an empty container, or a container under a name that is no constant."""
    found = [
        f"{source.name}:{node.lineno} declares global {', '.join(node.names)}"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Global)
    ]
    for node in source.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and (kind := _container(node.value)) is not None:
            names = _bound(node)
            if names and (kind == "empty" or not all(name.strip("_").isupper() for name in names)):
                found.append(f"{source.name}:{node.lineno} binds {', '.join(sorted(names))} to a mutable container")
    return found


def _container(value: ast.expr | None) -> str | None:
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]):
            return "empty"
        case ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp():
            return "filled"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in MUTABLE_CONSTRUCTORS:
            return "filled" if value.args or value.keywords else "empty"
        case _:
            return None


# --- comments


def nameless_ignores(source: Source) -> list[str]:
    """Comments that silence a check without naming it."""
    nameless = re.compile(r"(type|pyright|mypy):\s*ignore(?!\[[a-zA-Z])|\bnoqa(?!:\s*[A-Z]+\d)|pragma:\s*no cover")
    comments = (
        token for token in tokenize.generate_tokens(io.StringIO(source.text).readline) if token.type == tokenize.COMMENT
    )
    return [f"{source.name}:{token.start[0]} {token.string}" for token in comments if nameless.search(token.string)]


# --- effects


def effect_starts(source: Source) -> set[str]:
    """The functions that assert the gate, as `module:qualified name`. The gate's own methods are not among them."""
    return {
        f"{source.name}:{name}"
        for name, node in functions(source.tree)
        if any(_asserts_gate(statement) for statement in _own_statements(node))
    }


def loose_effect_starts(source: Source) -> list[str]:
    """Places where something stands between asserting the gate and awaiting the effect."""
    return [
        f"{source.name}:{statement.lineno} asserts the gate, and the next statement does not begin the effect"
        for block in _blocks(source.tree)
        for statement, following in zip(block, [*block[1:], None], strict=True)
        if _asserts_gate(statement) and not _begins_effect(following)
    ]


def _asserts_gate(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "assert_open"


def _begins_effect(statement: ast.stmt | None) -> bool:
    match statement:
        case ast.Expr(value=value) | ast.Return(value=value) | ast.Assign(value=value) | ast.AnnAssign(value=value):
            return isinstance(value, ast.Await)
        case ast.AsyncFor() | ast.AsyncWith():
            return True
        case _:
            return False


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block:
                yield block


def _own_statements(node: Function) -> Iterator[ast.stmt]:
    pending: list[ast.AST] = list(node.body)
    while pending:
        child = pending.pop()
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, (*type_of_function, ast.ClassDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(child))


# --- tests


def waits(source: Source) -> set[str]:
    """The functions that wait for real time (`sleep` of anything but zero), as `module:qualified name`."""
    return {
        f"{source.name}:{name}"
        for name, node in functions(source.tree)
        if any(isinstance(child, ast.Call) and _sleeps(child) for child in ast.walk(node))
    }


def _sleeps(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    module = (
        call.func.value.id if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) else ""
    )
    zero = len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
    return name == "sleep" and module in {"", "time", "anyio", "asyncio", "trio"} and not zero
