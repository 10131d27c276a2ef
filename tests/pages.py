"""Runs the programs in README.md and docs/, and compares their output with the output that the pages show.

The Python blocks of a page run in order, like the cells of a notebook, and share their names. A block with a title
(```python title="model.py") is also a file for the shell blocks. Shell blocks run after the Python blocks, if the page
shows their output. The text between `<!-- printed: NAME -->` and `<!-- end -->` is printed from tables.

`python -m tests.pages` writes the outputs and tables of all pages and notebooks again, or only those of the named ones.
"""

import ast
import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srcdiff.backends.backend import Trait
from srcdiff.backends.registry import BACKENDS
from srcdiff.diagnostics.catalogue import CATALOGUE
from srcdiff.diagnostics.options import COMPILING
from srcdiff.inspect import reference
from tests import session
from tests.diagnostics.test_catalogue import refusal_of_row
from tests.heavy import imported_by
from tests.test_layout import ORDER, PACKAGE

PROJECT = Path(__file__).parent.parent
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((PROJECT / "docs").rglob("*.ipynb"))
PRINTS = "<!-- prints -->"
"""The block after this comment is exactly the output of the block before it."""

_FENCE = re.compile(r'^```(\w*)(?: title="(\S+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_PRINTED = re.compile(r"^<!-- printed: ([\w ]+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A program or a command, the line where it starts, its output on the page, and the place of the output."""

    language: str
    name: str
    text: str
    line: int
    prints: str | None = None
    place: tuple[int, int] = (0, 0)

    @property
    def is_run(self) -> bool:
        return self.language == "python" or (self.language == "sh" and self.prints is not None)


def blocks_of(page: str) -> list[Block]:
    found: list[Block] = []
    for fence in _FENCE.finditer(page):
        language, name, text = fence.groups(default="")
        if page[: fence.start()].rstrip().endswith(PRINTS):
            before = found.pop()
            found.append(Block(before.language, before.name, before.text, before.line, text, fence.span(3)))
        else:
            found.append(Block(language, name, text, page.count("\n", 0, fence.start(3)) + 1))
    return [block for block in found if block.is_run]


def run(page: Path, folder: Path) -> list[tuple[Block, str]]:
    """The output of each block of a page."""
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    programs = [block for block in blocks if block.language == "python"]
    files = []
    for k, block in enumerate(programs):  # real files, because srcdiff reads the source of functions
        file = folder / f"{k}" / (block.name or f"{page.stem.lower()}.py")
        file.parent.mkdir()
        file.write_text(block.text, encoding="utf-8")
        files.append(str(file))
        if block.name:
            (folder / block.name).write_text(block.text, encoding="utf-8")
    printed = dict(zip(programs, _printed_by(files, folder), strict=True))
    for block in blocks:
        if block.language == "sh":
            printed[block] = _output(["sh", "-e", "-c", block.text], folder)
    outside = re.compile(rf"{re.escape(str(folder))}{os.sep}(\d+{os.sep})?")
    return [(block, outside.sub("", printed[block]).strip("\n") + "\n") for block in blocks]


def _printed_by(files: list[str], folder: Path) -> list[str]:
    """The output of programs: in this process, which has imported Numba already, unless they need a new one."""
    if any("NUMBA_" in Path(file).read_text(encoding="utf-8") for file in files):
        printed: list[str] = json.loads(_output([sys.executable, "-m", "tests.session", *files], folder))
        return printed
    with contextlib.chdir(folder):
        return session.printed_by(files)


def _output(command: list[str], folder: Path) -> str:
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    for tool, arguments in (("python", ""), ("srcdiff", "-m srcdiff ")):
        (tools / tool).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        (tools / tool).chmod(0o755)
    finished = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


# -- notebooks -------------------------------------------------------------------------------------------------------


def run_notebook(notebook: Path, folder: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Each code cell with its output. The cells run like the blocks of a page: no Jupyter is needed.

    Cells with the tag `picture` only draw. They are left out, because the tests do not need matplotlib.
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    programs = [c for c in cells if c["cell_type"] == "code" and "picture" not in c["metadata"].get("tags", ())]
    files = []
    for k, cell in enumerate(programs):
        files.append(folder / f"cell_{k}.py")
        files[-1].write_text("".join(cell["source"]), encoding="utf-8")
    yield from zip(programs, _printed_by([str(file) for file in files], folder), strict=True)


def shown_by(cell: dict[str, Any]) -> str:
    """The output that a notebook shows below a cell."""
    return "".join("".join(output["text"]) for output in cell["outputs"])


def write_notebook(notebook: Path) -> None:
    text = json.loads(notebook.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        printed = {cell["id"]: printed for cell, printed in run_notebook(notebook, Path(folder))}
    for cell in text["cells"]:
        if cell["id"] in printed:
            lines = printed[cell["id"]].splitlines(keepends=True)
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    notebook.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# -- tables ----------------------------------------------------------------------------------------------------------


def _functions() -> str:
    return "\n".join(f"### {table.title}\n\n{table.markdown()}" for table in reference.functions())


def _scipy_functions() -> str:
    return "\n".join(f"### {table.title}\n\n{table.markdown()}" for table in reference.scipy_functions())


def _special_functions() -> str:
    """The functions of `scipy.special`, with the largest measured errors."""
    from tests.scipy.special_table import printed_errors  # it imports mpmath

    return reference.special_functions(printed_errors()).markdown()


def _errors() -> str:
    return reference.errors().markdown() + "\n" + "\n".join(_errors_one_by_one())


def _errors_one_by_one() -> Iterator[str]:
    """Each kind of problem with the example that is its test, and its description."""
    for code, kind in sorted(CATALOGUE.items()):
        with tempfile.TemporaryDirectory() as folder:
            message = str(refusal_of_row(code, Path(folder))).replace(f"{folder}{os.sep}", "").strip("\n")
        arguments = kind.arguments.removesuffix(",")
        yield (
            f"### {code}\n\n{kind.title[0].upper()}{kind.title[1:]}. What to do: {kind.help}.\n\n"
            f"```python\n{kind.example}```\n\n`srcdiff.grad(f)({arguments})` says:\n\n```text\n{message}\n```\n"
        )


def _layers() -> str:
    """The packages and modules of srcdiff in the order of their imports, with their docstrings."""
    rows = []
    for layer in ORDER:
        folder = PACKAGE / layer
        file = folder / "__init__.py" if folder.is_dir() else PACKAGE / f"{layer}.py"
        said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        name = f"{layer}/" if folder.is_dir() else f"{layer}.py"
        rows.append((f"`{name}`", said.partition("\n\n")[0].replace("\n", " ")))
    return reference.Table("", ("package or module", "what it does"), tuple(rows)).markdown()


def _backends() -> str:
    rows = []
    for backend in BACKENDS.values():
        said = sys.modules[f"srcdiff.backends.{backend.name}"].__doc__ or ""
        traits = ", ".join(f"`{t.name}`" for t in Trait if t in backend.traits)
        passes = ", ".join(sorted(backend.passes))
        own = ", ".join(f"`{name}`" for name in backend.options.options if name not in COMPILING)
        rows.append((f"`{backend.name}`", said.partition(": ")[2].rstrip("."), traits, passes, own))
    columns = ("name", "how it runs", "traits", "passes of its own", "options of its own")
    return reference.Table("", columns, tuple(rows)).markdown()


TABLES: dict[str, Callable[[], str]] = {
    "layers": _layers,
    "backends": _backends,
    "elementwise": lambda: reference.elementwise().markdown(),
    "constant": lambda: reference.constant().markdown(),
    "functions": _functions,
    "special functions": _special_functions,
    "functions of SciPy": _scipy_functions,
    "distributions": lambda: reference.distributions().markdown(),
    "methods": lambda: reference.methods().markdown(),
    "builtin functions": lambda: reference.builtin_functions().markdown(),
    "refused syntax": lambda: reference.refused_syntax().markdown(),
    "errors": _errors,
}


def with_tables(page: str) -> str:
    """The page with its current tables."""
    return _PRINTED.sub(lambda region: f"<!-- printed: {region[1]} -->\n\n{TABLES[region[1]]()}\n<!-- end -->", page)


def write(pages: list[Path]) -> None:
    for page in pages:
        if any(importlib.util.find_spec(name) is None for name in imported_by(page.read_text(encoding="utf-8"))):
            print(f"{page}: left as it is, a library that it shows is not installed")
            continue
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            for block, printed in sorted(run(page, Path(folder)), key=lambda p: p[0].place, reverse=True):
                if block.prints is not None:
                    start, end = block.place
                    text = text[:start] + printed + text[end:]  # the places before it stay where they are
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    named = [Path(name) for name in sys.argv[1:]] or [*PAGES, *NOTEBOOKS]
    write([page for page in named if page.suffix == ".md"])
    for notebook in named:
        if notebook.suffix == ".ipynb":
            write_notebook(notebook)
