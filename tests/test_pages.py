"""README.md and docs/ are run: their programs, the outputs that they show, their tables, and their links."""

import importlib.util
import re

import pytest

from tests.pages import PAGES, PRINTS, PROJECT, blocks_of, run, with_tables

README = (PROJECT / "README.md").read_text(encoding="utf-8")


def skip_without_cuda(page):
    runs = re.search(r"backend=.cuda|import cuda|SD501", page.read_text(encoding="utf-8"))
    if runs and importlib.util.find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")


@pytest.mark.usefixtures("own_backends")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_prints_what_it_shows(page, tmp_path):
    skip_without_cuda(page)
    for block, printed in run(page, tmp_path):
        assert block.prints in (None, printed), f"{page.name}, the block at line {block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_are_those_of_the_program(page):
    skip_without_cuda(page)
    text = page.read_text(encoding="utf-8")
    assert with_tables(text) == text, "write them anew with `python -m tests.pages`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_output_belongs_to_a_block(page):
    text = page.read_text(encoding="utf-8")
    assert text.count(f"\n{PRINTS}\n") == sum(block.prints is not None for block in blocks_of(text))


def anchors(page):
    """What a heading is called in a link to it."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith("http"):
            file, _, anchor = target.partition("#")
            found = page.parent / file if file else page
            assert found.exists(), target
            assert not anchor or anchor in anchors(found), target


def test_readme_shows_programs_and_outputs():
    assert sum(block.prints is not None for block in blocks_of(README)) >= 2


def test_ci_runs_the_tests_as_the_readme_does():
    (pytest_command,) = set(re.findall(r"python -m pytest[^\n`]*", README.split("\n## ")[0]))
    ci = (PROJECT / ".ci" / "run").read_text(encoding="utf-8")
    assert f"/bin/{pytest_command}\n" in ci.replace('"', "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_knows_no_machine(page):
    assert not re.findall(r"(?<![\w.])/(?:home|root|work|Users|tmp|opt)/\S*", page.read_text(encoding="utf-8"))
