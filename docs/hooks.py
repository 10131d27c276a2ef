"""What mkdocs does not do by itself: pages for notebooks and examples, and outputs that look like outputs."""

import ast
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

PROJECT = Path(__file__).parent.parent


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each notebook, each example, and the files of the project that readers of the site want."""
    for notebook in sorted((PROJECT / "docs" / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=page_of_notebook(notebook)))
    for example in sorted((PROJECT / "examples").glob("*.py")):
        files.append(File.generated(config, f"examples/{example.stem}.md", content=page_of_example(example)))
    for name in ("CONTRIBUTING", "CHANGELOG"):
        text = (PROJECT / f"{name}.md").read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, f"{name.lower()}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Point links at these pages, insert the README's table of speed, and mark what programs print."""
    markdown = re.sub(r"\(\.\./((?:\.\./)*examples/\w+)\.py\)", r"(\1.md)", markdown)
    markdown = re.sub(r"\(([\w./]*notebooks/\w+)\.ipynb\)", r"(\1.md)", markdown)
    markdown = re.sub(r"\(\.\./(CONTRIBUTING|CHANGELOG)\.md\)", lambda link: f"({link[1].lower()}.md)", markdown)
    markdown = re.sub(r"\(\.\./((?:\.\./)*)README\.md(?:#\w+)?\)", r"(\1index.md)", markdown)
    markdown = markdown.replace("<!-- the README's table of speed -->", speed_table())
    markdown = re.sub(r"^### [\w.]+\n\n(?=::: )", "", markdown, flags=re.MULTILINE)  # mkdocstrings writes it
    return re.sub(r"^<!-- prints -->\n```(\w+)$", r"``` { .\1 .output }", markdown, flags=re.MULTILINE)


def speed_table() -> str:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    speed = readme.partition("<!-- speed -->")[2].partition("<!-- end of speed -->")[0]
    return re.search(r"^```text\n.*?^```$", speed, re.MULTILINE | re.DOTALL)[0]


def page_of_example(example: Path) -> str:
    text = example.read_text(encoding="utf-8")
    said = ast.get_docstring(ast.parse(text)) or ""
    title = example.stem.replace("_", " ").capitalize()
    code = text.split('"""\n', 1)[1].lstrip("\n")
    picture = PROJECT / "docs" / "images" / f"{example.stem}.png"
    shown = f"![The picture that this program draws](../images/{picture.name})\n\n" if picture.exists() else ""
    return f'# {title}\n\n{said}\n\n{shown}```python title="examples/{example.name}"\n{code}```\n'


def page_of_notebook(notebook: Path) -> str:
    """Its cells in order: texts as they are, programs as blocks, and what they print behind them."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in data:
                parts.append(f'<img src="data:image/png;base64,{"".join(data["image/png"]).strip()}" alt="">')
            else:
                parts.append(f"<!-- prints -->\n```text\n{''.join(data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
