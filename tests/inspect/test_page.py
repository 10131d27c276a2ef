"""The page in a real browser: hovering over a line of either side highlights its partners. Needs Chromium."""

import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

import srcdiff

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1200,900",
)
LIT = (0xFF, 0xF3, 0xCD)
"""The colour of highlighted partners on a light screen."""


def logistic(x, rate, steps):
    for t in range(steps):
        for i in range(len(x)):
            x[i] = rate * x[i] * (1.0 - x[i])
    return np.sum(x)


FIRST = logistic.__code__.co_firstlineno


@pytest.fixture
def page(tmp_path) -> Path:
    file = tmp_path / "page.html"
    srcdiff.show(logistic, "float64[:]", float, int, wrt="x", html=file)
    return file


def test_page_is_one_file_that_asks_for_nothing(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=|@import|url\(|https?://", text)
    assert text.count("<div") == text.count("</div>")
    assert text.count("<details") == len(srcdiff.show(logistic).steps)


def test_page_marks_kept_values_and_says_how_much(page):
    text = page.read_text(encoding="utf-8")
    assert f'id="s{FIRST + 3}" title="kept for the reverse sweep: x: 8 * steps * len(x) bytes"' in text
    assert "<td>8 * steps * len(x) bytes</td>" in text


def browse(tmp_path: Path, *arguments: str) -> str:
    command = [str(BROWSER), *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def lit(dom: str) -> dict[str, set[str]]:
    """The ids of highlighted lines, by the kind of highlight."""
    found: dict[str, set[str]] = {"on": set(), "here": set()}
    for classes, name in re.findall(r'<div class="l ?([\w ]*)" id="([\w-]+)"', dom):
        for one in classes.split():
            found[one].add(name)
    return found


def generated(text: str) -> dict[str, str]:
    """The ids of generated lines, by their text."""
    lines = re.findall(r'id="(g\d+)"[^>]*><b>\d+</b><u>.?</u><code>(.*?)</code>', text)
    return {re.sub(r"<.*?>", "", code).strip(): name for name, code in lines}


def hovered(page: Path, tmp_path: Path, line: str) -> dict[str, set[str]]:
    """The highlighted lines after the mouse has moved to a line."""
    move = f"document.getElementById('{line}').firstChild.dispatchEvent(new MouseEvent('mouseover', {{bubbles: true}}))"
    other = tmp_path / "hovered.html"
    text = page.read_text(encoding="utf-8")
    other.write_text(text.replace("</body>", f"<script>{move}</script></body>"), encoding="utf-8")
    return lit(browse(tmp_path, "--dump-dom", other.as_uri()))


@in_browser
def test_hovering_over_a_line_of_the_user_lights_up_what_came_from_it(page, tmp_path):
    ids = generated(page.read_text(encoding="utf-8"))
    found = hovered(page, tmp_path, f"s{FIRST + 3}")

    assert found["here"] == {f"s{FIRST + 3}"}
    own = ("x_2[i] =", "x_bar_1[i] =", "if t == 0:", "else:")
    choice = ids["x_1 = x"]  # of the row of kept_x
    assert found["on"] == {choice} | {name for text, name in ids.items() if "kept_x" in text or text.startswith(own)}


@in_browser
def test_hovering_over_a_generated_line_lights_up_where_it_came_from(page, tmp_path):
    name = generated(page.read_text(encoding="utf-8"))["for t in range(steps - 1, -1, -1):  # for t in range(steps):"]
    assert hovered(page, tmp_path, name) == {"here": {name}, "on": {f"s{FIRST + 1}"}}


@in_browser
def test_a_line_in_the_address_is_held(page, tmp_path):
    found = lit(browse(tmp_path, "--dump-dom", f"{page.as_uri()}#at=s{FIRST + 1}"))
    assert found["here"] == {f"s{FIRST + 1}"}
    assert len(found["on"]) >= 2


@in_browser
def test_partners_are_seen_on_the_screen(page, tmp_path):
    plain, held = tmp_path / "plain.png", tmp_path / "held.png"
    light = "--blink-settings=preferredColorScheme=1"
    browse(tmp_path, light, f"--screenshot={plain}", page.as_uri())
    browse(tmp_path, light, f"--screenshot={held}", f"{page.as_uri()}#at=s{FIRST + 3}")

    assert lit_pixels(plain) == [0, 0]
    left, right = lit_pixels(held)
    assert left == 0  # the line itself is in another colour
    assert right > 10_000


def lit_pixels(file: Path) -> list[int]:
    """How many pixels of the left and of the right side have the colour of partners."""
    pixels = png(file.read_bytes())
    same = np.all(pixels[:, :, :3] == LIT, axis=2)
    middle = same.shape[1] * 9 // 20  # the generated side is a little wider
    return [int(same[:, :middle].sum()), int(same[:, middle:].sum())]


def png(data: bytes) -> np.ndarray:
    """The pixels of an image with eight bits for each colour: https://www.w3.org/TR/png-3."""
    at, compressed, width, height, kind = 8, b"", 0, 0, 0
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if name == b"IHDR":
            width, height, _, kind = struct.unpack(">IIBB", body[:10])
        compressed += body if name == b"IDAT" else b""
        at += length + 12
    each = {2: 3, 6: 4}[kind]
    rows = np.frombuffer(zlib.decompress(compressed), np.uint8).reshape(height, 1 + width * each)
    before, found = np.zeros(width * each, np.uint8), []
    for row in rows:
        before = _unfiltered(int(row[0]), row[1:].copy(), before, each)
        found.append(before)
    return np.array(found).reshape(height, width, each)


def _unfiltered(how: int, row: np.ndarray, above: np.ndarray, each: int) -> np.ndarray:
    if how in (0, 2):
        return row + above if how == 2 else row
    if how == 1:
        return np.cumsum(row.reshape(-1, each), axis=0, dtype=np.uint8).ravel()
    values, up = row.tolist(), above.tolist()
    for k, value in enumerate(values):
        left, corner = (values[k - each], up[k - each]) if k >= each else (0, 0)
        if how == 3:
            values[k] = (value + (left + up[k]) // 2) % 256
            continue
        guess = left + up[k] - corner
        near = min((abs(guess - left), 0, left), (abs(guess - up[k]), 1, up[k]), (abs(guess - corner), 2, corner))
        values[k] = (value + near[2]) % 256
    return np.array(values, np.uint8)
