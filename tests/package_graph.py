"""The picture of the packages, drawn from their imports into docs/images/packages.svg: `python -m tests.package_graph`.

An arrow leads from a package to one that it imports. Imports that follow from others are left out (the transitive
reduction), because a package may import everything below it.
"""

from __future__ import annotations

from html import escape

from tests.test_layout import MODULES, ORDER, PACKAGE, PROJECT, imported_layers, layer_of

PICTURE = PROJECT / "docs" / "images" / "packages.svg"
WIDTH, HEIGHT, ACROSS, DOWN = 112, 28, 132, 56
STYLE = """
text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #1f2328 }
rect { fill: #f6f8fa; stroke: #8c959f; rx: 5 }
path { fill: none; stroke: #57606a; stroke-width: 1.2; marker-end: url(#tip) }
#tip path { fill: #57606a; stroke: none; marker-end: none }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  rect { fill: #21262d; stroke: #6e7681 }
  path { stroke: #8b949e }
  #tip path { fill: #8b949e }
}
"""


def imports() -> dict[str, set[str]]:
    """For each package or top-level module, those that it imports."""
    found: dict[str, set[str]] = {layer: set() for layer in ORDER}
    for module in MODULES:
        found[layer_of(module)] |= imported_layers(module) - {layer_of(module)}
    return found


def reduced(graph: dict[str, set[str]]) -> dict[str, list[str]]:
    """The graph without the edges that follow from others.

    >>> reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    {'a': ['b'], 'b': ['c'], 'c': []}
    """
    below: dict[str, set[str]] = {}
    for node in sorted(graph, key=list(graph).index, reverse=True):  # imports go down the order
        below[node] = set(graph[node]).union(*(below[n] for n in graph[node]))
    return {
        node: sorted(n for n in graph[node] if not any(n in below[other] for other in graph[node])) for node in graph
    }


def levels(graph: dict[str, list[str]]) -> dict[str, int]:
    """The row of each node: one below the lowest of its importers."""
    row = dict.fromkeys(graph, 0)
    for node in graph:
        for imported in graph[node]:
            row[imported] = max(row[imported], row[node] + 1)
    return row


def picture() -> str:
    """The text of the SVG file."""
    graph = reduced(imports())
    row = levels(graph)
    chains: list[list[str]] = []  # an edge that spans several rows has a place in each of them
    rows: list[list[str]] = [[] for _ in range(max(row.values()) + 1)]
    parents: dict[str, list[str]] = {}
    for node in graph:
        rows[row[node]].append(node)
        for imported in graph[node]:
            places = [f"{node}>{imported}>{k}" for k in range(row[node] + 1, row[imported])]
            chains.append([node, *places, imported])
            for k, place in enumerate(places):
                rows[row[node] + 1 + k].append(place)
            for above, under in zip(chains[-1], chains[-1][1:], strict=False):
                parents.setdefault(under, []).append(above)
    across: dict[str, float] = {}
    for nodes in rows:
        nodes.sort(key=lambda n: sum(across[p] for p in parents.get(n, ())) / max(len(parents.get(n, ())), 1))
        across |= {node: (k - (len(nodes) - 1) / 2) * ACROSS for k, node in enumerate(nodes)}
    middle = (max(len(nodes) for nodes in rows) * ACROSS) / 2
    at = {node: (middle + across[node], 10 + k * DOWN) for k, nodes in enumerate(rows) for node in nodes}
    lines = []
    for chain in chains:
        x, y = at[chain[0]]
        text = f"M{x:g} {y + HEIGHT:g}"
        y += HEIGHT
        for node in chain[1:]:
            to_x, to_y = at[node][0], at[node][1] - (3 if node in graph else 0)
            text += f" C{x:g} {y + 14:g} {to_x:g} {to_y - 14:g} {to_x:g} {to_y:g}"
            if node not in graph:
                text += f" V{to_y + HEIGHT:g}"
            x, y = to_x, to_y + HEIGHT
        lines.append(f'<path d="{text}"/>')
    for node in graph:
        x, y = at[node]
        name = f"{node}/" if (PACKAGE / node).is_dir() else f"{node}.py"
        lines.append(f'<rect x="{x - WIDTH / 2:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}"/>')
        lines.append(f'<text x="{x:g}" y="{y + 18:g}">{escape(name)}</text>')
    size = f'width="{2 * middle:g}" height="{len(rows) * DOWN - HEIGHT + 20:g}"'
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            "<title>The packages of srcdiff, from the top to the bottom, with their imports</title>",
            f"<style>{STYLE}</style>",
            f'<defs>{tip}<path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
            *lines,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
