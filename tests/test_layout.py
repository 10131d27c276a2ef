"""The layout of the package: imports go one way, and every module has a docstring."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
PACKAGE = PROJECT / "srcdiff"
MODULES = sorted(PACKAGE.rglob("*.py"))

# From top to bottom. A module imports only from its own layer and from lower ones, also inside of functions.
ORDER = [
    "__main__",
    "cli",
    "__init__",
    "cuda",
    "distributed",
    "bridges",
    "api",
    "inspect",
    "driver",
    "pipeline",
    "backends",
    "caching",
    "emit",
    "passes",
    "analyses",
    "rules",
    "frontend",
    "library",
    "signature",
    "ir",
    "diagnostics",
    "tape",
    "quick_dataclasses",
    "measure",
    "version",
]


def layer_of(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def layer_of_name(name: str) -> str:
    """The layer of `srcdiff.ir.nodes`, or of `srcdiff.grad`, which is a name and not a module."""
    _, _, rest = name.partition(".")
    first = rest.partition(".")[0]
    return first if first in ORDER else "__init__"


def imported_names(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.name}:{node.lineno} imports relatively"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_layers(module: Path) -> set[str]:
    return {layer_of_name(name) for name in imported_names(module) if name.split(".")[0] == "srcdiff"}


def module_id(module: Path) -> str:
    return str(module.relative_to(PROJECT))


@pytest.mark.smoke
@pytest.mark.parametrize("module", MODULES, ids=module_id)
def test_module_imports_only_from_its_own_layer_and_below(module):
    assert layer_of(module) in ORDER, "a new layer has its place in ORDER"
    own = ORDER.index(layer_of(module))
    assert [] == [layer for layer in imported_layers(module) if ORDER.index(layer) < own]


@pytest.mark.smoke
@pytest.mark.parametrize("module", MODULES, ids=module_id)
def test_module_says_what_it_does(module):
    assert ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))


def test_public_names_are_re_exported_and_nothing_else_is_done():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    docstring, *statements = tree.body
    assert isinstance(docstring, ast.Expr)
    for statement in statements:
        is_all = isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) in ("__all__", "__version__")
        assert is_all or isinstance(statement, ast.ImportFrom), ast.unparse(statement)


def test_every_package_has_an_init_file():
    folders = {module.parent for module in MODULES}
    assert [] == [str(folder) for folder in folders if not (folder / "__init__.py").exists()]


def test_every_module_has_a_name_of_its_own():
    names = [module.stem for module in MODULES if module.stem not in ("__init__", "__main__")]
    assert [] == sorted({name for name in names if names.count(name) > 1})


def test_no_two_modules_of_the_front_end_import_each_other():
    """Neither directly nor through others: a module can be read with only the lower ones in mind."""
    modules = [m for m in MODULES if layer_of(m) == "frontend" and m.stem != "__init__"]
    names = {".".join(m.relative_to(PROJECT).with_suffix("").parts): m for m in modules}

    def imported(module: Path) -> set[str]:
        tree = ast.parse(module.read_text(encoding="utf-8"))
        at_import = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        found = {n for node in at_import for a in node.names for n in (node.module, f"{node.module}.{a.name}")}
        return found & names.keys()

    left = {name: imported(module) for name, module in names.items()}
    while free := [name for name, below in left.items() if not below & left.keys()]:
        for name in free:
            del left[name]
    assert [] == sorted(left)
