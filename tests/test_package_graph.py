"""The picture of the packages is current and correct."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from tests.package_graph import PICTURE, imports, picture, reduced
from tests.test_layout import ORDER


def test_picture_is_current():
    assert PICTURE.read_text(encoding="utf-8") == picture(), "draw it again with `python -m tests.package_graph`"


def test_picture_has_a_box_for_every_package():
    texts = [element.text for element in ET.fromstring(picture()).iter("{http://www.w3.org/2000/svg}text")]

    assert sorted(ORDER) == sorted(str(text).removesuffix(".py").removesuffix("/") for text in texts)


def test_reduction_reaches_what_the_imports_reach():
    def reached(graph, node):
        return set(graph[node]).union(*(reached(graph, n) for n in graph[node]))

    graph = imports()
    small = reduced(graph)

    assert all(reached(graph, node) == reached(small, node) for node in graph)
    assert sum(map(len, small.values())) < sum(map(len, graph.values()))
