"""The tests run README.md, the pages of docs/ and the notebooks, and check their outputs, tables and links."""

import importlib.util
import re

import pytest

from tests.heavy import skip_without_heavy
from tests.pages import NOTEBOOKS, PAGES, PRINTS, PROJECT, blocks_of, run, run_notebook, shown_by, with_tables

README = (PROJECT / "README.md").read_text(encoding="utf-8")


each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))


def skip_without_cuda(needs_it):
    if needs_it and importlib.util.find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")


@pytest.mark.usefixtures("own_backends")
@each_page
def test_page_prints_what_it_shows(page, tmp_path):
    programs = "".join(block.text for block in blocks_of(page.read_text(encoding="utf-8")))
    skip_without_cuda(re.search(r"backend=.cuda|import cuda", programs))
    skip_without_heavy(programs)
    for block, printed in run(page, tmp_path):
        assert block.prints in (None, printed), f"{page.name}, the block at line {block.line}"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebook_prints_what_it_shows(notebook, tmp_path):
    for cell, printed in run_notebook(notebook, tmp_path):
        assert shown_by(cell) == printed, f"{notebook.name}, the cell {cell['id']}"


@each_page
def test_tables_are_those_of_the_program(page):
    text = page.read_text(encoding="utf-8")
    skip_without_cuda("<!-- printed: errors -->" in text)
    assert with_tables(text) == text, "write them again with `python -m tests.pages`"


@each_page
def test_every_output_belongs_to_a_block(page):
    text = page.read_text(encoding="utf-8")
    assert text.count(f"\n{PRINTS}\n") == sum(block.prints is not None for block in blocks_of(text))


def anchors(page):
    """The anchor of a heading."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@each_page
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "code", text)):
        if not target.startswith("http"):
            file, _, anchor = target.partition("#")
            found = page.parent / file if file else page
            assert found.exists(), target
            assert not anchor or anchor in anchors(found), target


def test_every_page_is_in_the_navigation_of_the_site():
    docs = PROJECT / "docs"
    expected = {str(page.relative_to(docs).with_suffix(".md")) for page in [*PAGES[1:], *NOTEBOOKS]}
    navigation = (PROJECT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    of_the_project = {"contributing.md", "changelog.md"}  # docs/hooks.py copies them from the project's folder
    assert expected | of_the_project == set(re.findall(r"\S+\.md", navigation))


def test_readme_shows_programs_and_outputs():
    assert sum(block.prints is not None for block in blocks_of(README)) >= 2


def test_ci_runs_the_tests_as_the_readme_does():
    (pytest_command,) = set(re.findall(r"python -m pytest[^\n`]*", README.split("\n## ")[0]))
    ci = (PROJECT / ".ci" / "run").read_text(encoding="utf-8")
    assert f"/bin/{pytest_command}\n" in ci.replace('"', "")


@each_page
def test_page_knows_no_machine(page):
    assert not re.findall(r"(?<![\w.])/(?:home|root|work|Users|tmp|opt)/\S*", page.read_text(encoding="utf-8"))
