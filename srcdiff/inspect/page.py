"""The two sides as a page of HTML that needs nothing else: hover over a line of either, and its partners light up."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from srcdiff.diagnostics import printable
from srcdiff.inspect.sides import Piece, Place, Sides, Step
from srcdiff.inspect.syntax import Line

_STYLES = {
    "keyword": "k",
    "string": "s",
    "number": "n",
    "comment": "c",
    "function": "f",
    "adjoint": "a",
    "kept": "m",
}
"""The classes of styles in the page, short because there are many."""

_STYLE = """
:root{color-scheme:light dark;--page:#f6f5f2;--card:#fff;--text:#22262b;--faint:#8a9099;--rule:#e4e2dc;--here:#ffe9a8;
--on:#fff3cd;--bar:#e0a100;--mark:#c2410c;--k:#7c3aed;--s:#0f766e;--n:#0369a1;--c:#80868f;--f:#1d4ed8;--a:#b45309}
@media(prefers-color-scheme:dark){:root{--page:#15171a;--card:#1c1f23;--text:#d9dce1;--faint:#737a84;--rule:#2c3036;
--here:#564513;--on:#3d3414;--bar:#e6b93f;--mark:#fb923c;--k:#c4a7ff;--s:#6fd3c3;--n:#7cc4f5;--c:#7d848e;--f:#8fb4ff;
--a:#f0b35e}}
*{box-sizing:border-box}
body{margin:0;padding:28px clamp(16px,3vw,48px) 56px;background:var(--page);color:var(--text);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
h1{margin:0;font-size:22px;font-weight:600;letter-spacing:-.01em}
h1 i{color:var(--faint);font-style:normal;font-weight:400;padding:0 .3em}
h2{margin:0 0 8px;font-size:13px;font-weight:600;color:var(--faint)}
header p{margin:4px 0 20px;color:var(--faint)}
code,.code,td{font-family:ui-monospace,"SF Mono","Cascadia Code","DejaVu Sans Mono",Menlo,Consolas,monospace}
main{display:grid;grid-template-columns:minmax(0,5fr) minmax(0,6fr);gap:20px;align-items:start}
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px;overflow:auto}
main .card{max-height:calc(100vh - 150px)}
.code{padding:10px 0;font-size:12.5px;line-height:1.6;width:max-content;min-width:100%}
.code+h3{border-top:1px solid var(--rule);margin:0;padding:10px 16px 0}
h3{font-size:12px;font-weight:500;color:var(--faint)}
.l{display:flex;white-space:pre;padding-right:20px;border-left:3px solid transparent;min-height:1.6em}
.l>b{flex:none;width:3.6em;padding-right:1.2em;text-align:right;font-weight:400;color:var(--faint);user-select:none}
.l>u{flex:none;width:1.1em;text-decoration:none;color:var(--mark);user-select:none}
.l[data-s],#source .l{cursor:default}
.on{background:var(--on);border-left-color:var(--bar)}
.here{background:var(--here);border-left-color:var(--bar)}
.k{color:var(--k)}.s{color:var(--s)}.n{color:var(--n)}.c{color:var(--c)}.f{color:var(--f);font-weight:600}
.a{color:var(--a)}.m{color:var(--mark)}
section{margin-top:32px}
table{border-collapse:collapse;font-size:12.5px}
td{padding:3px 28px 3px 0;vertical-align:top;white-space:nowrap}
td:first-child{color:var(--mark)}
td:last-child{color:var(--faint)}
details{background:var(--card);border:1px solid var(--rule);margin-top:-1px}
details:first-of-type{border-radius:10px 10px 0 0}
details:last-of-type{border-radius:0 0 10px 10px}
summary{padding:9px 16px;cursor:pointer;list-style:none;display:flex;gap:14px}
summary::-webkit-details-marker{display:none}
summary b{color:var(--faint);font-weight:400;width:1.4em;text-align:right}
summary small{margin-left:auto;color:var(--faint)}
details.same summary{cursor:default;color:var(--faint)}
details[open] summary{border-bottom:1px solid var(--rule)}
details .code{max-height:60vh;overflow:auto;width:auto;font-size:11.5px}
details .l{padding-left:14px}
footer{margin-top:28px;color:var(--faint);font-size:13px}
@media(max-width:900px){main{grid-template-columns:1fr}main .card{max-height:60vh}}
"""

_SCRIPT = """
const partners = new Map();
for (const line of document.querySelectorAll('[data-s]')) {
  line.partners = line.dataset.s.split(' ').map(id => document.getElementById(id));
  for (const source of line.partners) {
    if (!partners.has(source)) partners.set(source, []);
    partners.get(source).push(line);
  }
}
let pinned = null;
function light(line) {
  for (const lit of document.querySelectorAll('.on, .here')) lit.classList.remove('on', 'here');
  if (!line) return [];
  const found = line.partners || partners.get(line) || [];
  if (found.length) line.classList.add('here');
  for (const partner of found) partner.classList.add('on');
  return found;
}
function pin(line) {
  pinned = line;
  const lit = light(line);
  for (const side of document.querySelectorAll('main .card')) {
    if (side.contains(line)) continue;
    const partner = lit.find(found => side.contains(found));
    if (partner) bring(partner, side);
  }
}
function bring(line, side) {
  const from = line.getBoundingClientRect().top - side.getBoundingClientRect().top;
  if (from < 0 || from > side.clientHeight - 20) side.scrollTop += from - side.clientHeight / 3;
}
const lineOf = event => event.target.closest('.l');
document.addEventListener('mouseover', event => light(lineOf(event) || pinned));
document.addEventListener('mouseleave', () => light(pinned));
document.addEventListener('click', event => {
  const line = lineOf(event);
  if (!line || !line.id) return;
  pin(line === pinned ? null : line);
  history.replaceState(null, '', pinned ? '#at=' + line.id : '#');
});
document.addEventListener('keydown', event => { if (event.key === 'Escape') pin(null); });
if (location.hash.startsWith('#at=')) {
  const line = document.getElementById(location.hash.slice(4));
  if (line) { bring(line, line.closest('.card')); pin(line); }
}
"""


def page(sides: Sides) -> str:
    first = sides.pieces[0]
    values = f"{len(sides.kept)} value{'s' if len(sides.kept) > 1 else ''}" if sides.kept else "nothing"
    keeps = f"keeps {values} for the reverse sweep"
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{escape(sides.derivative)}</title><style>{_STYLE}</style></head><body>",
        f"<header><h1><code>{escape(sides.function)}</code><i>→</i><code>{escape(sides.derivative)}</code></h1>",
        f"<p>{escape(printable(Path(first.file).name))}, line {first.first} · {keeps}</p></header>",
        '<main><div><h2>Your source</h2><div class="card" id="source">',
        *_source(sides),
        '</div></div><div><h2>Generated</h2><div class="card" id="generated"><div class="code">',
        *_generated(sides),
        "</div></div></div></main>",
        *_kept(sides),
        "<section><h2>The steps of the compiler</h2>",
        *(_step(k, step) for k, step in enumerate(sides.steps)),
        "</section>",
        "<footer>Hover over a line to see what belongs to it; click to hold it, Escape to let go.</footer>",
        f"<script>{_SCRIPT}</script></body></html>\n",
    ]
    return "".join(parts)


def framed(html: str) -> str:
    """The page inside another one, such as a notebook, with its own styles."""
    style = "width:100%;height:640px;border:0;border-radius:10px"
    return f'<iframe srcdoc="{escape(html)}" style="{style}"></iframe>'


def _source(sides: Sides) -> Iterator[str]:
    notes: dict[Place, list[str]] = {}
    for place, kept in sides.kept:
        notes.setdefault(place, []).append(f"{kept.variable or 'a part'}: {kept.formula} bytes")
    for k, piece in enumerate(sides.pieces):
        if k:
            yield f"<h3>{escape(piece.name)}, {escape(printable(Path(piece.file).name))}</h3>"
        yield '<div class="code">'
        yield from _piece(k, piece, notes)
        yield "</div>"


def _piece(k: int, piece: Piece, notes: dict[Place, list[str]]) -> Iterator[str]:
    for number, line in enumerate(piece.lines, piece.first):
        note = notes.get((k, number))
        title = f' title="kept for the reverse sweep: {escape("; ".join(note))}"' if note else ""
        mark = "●" if note else ""
        yield f'<div class="l" id="{_id((k, number))}"{title}><b>{number}</b><u>{mark}</u>{_html(line)}</div>'


def _id(place: Place) -> str:
    piece, number = place
    return f"s{number}" if piece == 0 else f"s{piece}-{number}"


def _generated(sides: Sides) -> Iterator[str]:
    for number, (line, link, keeps) in enumerate(zip(sides.generated, sides.links, sides.keeps, strict=True), 1):
        mark = "●" if keeps else ""
        yield f'<div class="l" id="g{number}"{_linked(link)}><b>{number}</b><u>{mark}</u>{_html(line)}</div>'


def _linked(link: tuple[Place, ...]) -> str:
    return f' data-s="{" ".join(map(_id, link))}"' if link else ""


def _html(line: Line) -> str:
    pieces = "".join(f'<span class="{_STYLES[s]}">{escape(t)}</span>' if s else escape(t) for s, t in line)
    return f"<code>{pieces}</code>"


def _kept(sides: Sides) -> Iterator[str]:
    if sides.kept:
        yield "<section><h2>Kept for the reverse sweep</h2><table>"
        for (piece, number), kept in sides.kept:
            line = sides.pieces[piece].lines[number - sides.pieces[piece].first]
            text = "".join(t for _, t in line).strip()
            cells = (kept.variable or "a part of", f"{kept.formula} bytes", f"line {number}: {text}")
            yield f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        yield "</table></section>"


def _step(k: int, step: Step) -> str:
    number = "" if k == 0 else str(k)
    if not step.lines:
        head = f"<b>{number}</b>{escape(step.name)}<small>no change</small>"
        return f'<details class="same"><summary>{head}</summary></details>'
    lines = "".join(
        f'<div class="l"{_linked((place,) if place else ())}>{escape(text)}</div>' for text, place in step.lines
    )
    head = f"<b>{number}</b>{escape(step.name)}<small>{len(step.lines)} lines</small>"
    return f'<details name="step"><summary>{head}</summary><div class="code">{lines}</div></details>'
