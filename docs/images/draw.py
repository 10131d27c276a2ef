"""Draws the pictures of docs/gallery.md: `python docs/images/draw.py`, with matplotlib and Pillow installed."""

import runpy
import sys
from pathlib import Path

import matplotlib as mpl
from PIL import Image

mpl.use("Agg")  # into files, without a display
IMAGES = Path(__file__).parent
EXAMPLES = IMAGES.parent.parent / "examples"
STYLE = {
    "figure.figsize": (6.0, 3.6),
    "figure.dpi": 120,
    "figure.autolayout": True,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def draw(example: Path) -> None:
    """Run an example with the name of a file, and reduce the picture to a few colours: they are small files."""
    picture = IMAGES / f"{example.stem}.png"
    sys.argv = [str(example), str(picture)]
    with mpl.rc_context(STYLE):
        runpy.run_path(str(example), run_name="__main__")
        mpl.pyplot.close("all")
    Image.open(picture).convert("RGB").quantize(48).save(picture, optimize=True)


if __name__ == "__main__":
    for example in sorted(EXAMPLES.glob("*.py")):
        if "sys.argv" in example.read_text(encoding="utf-8"):
            draw(example)
