# SPDX-License-Identifier: Apache-2.0
"""The README's picture: for how long a thread is held that opens a gate for a thousand others.

It is drawn without measuring any text: names begin at the left edge, figures begin behind their bars, and both have
more room than they need. So it is right in any font. It is a bit wider than a phone's column of text: there the
program comes below it, and on wider screens beside it. (Beside a narrower picture, a phone of 430 pixels would show a
strip of the program.)
"""

from dataclasses import dataclass
from xml.sax.saxutils import escape

from tocsin_lab.errors import LabError
from tocsin_lab.present.numerals import quantity
from tocsin_lab.present.quotes import Bar, Figures

WIDTH, ROW, TOP = 400, 22, 48
BARS_AT, LONGEST = 190, 126  # where bars begin, and how long the longest is


@dataclass(frozen=True)
class Theme:
    name: str
    ink: str
    soft: str
    ours: str
    peer: str


THEMES = (
    Theme("light", ink="#1f2328", soft="#59636e", ours="#1a7f37", peer="#b6bfc8"),
    Theme("dark", ink="#f0f6fc", soft="#9aa4ae", ours="#3fb950", peer="#5a646f"),
)


def svg(figures: Figures, theme: Theme) -> str:
    if not any(one.ours for one in figures.bars):
        raise LabError("the result lacks the scenario broadcast with 1,000 threads: the picture needs it")
    most = max(one.nanoseconds for one in figures.bars)
    height = TOP + ROW * len(figures.bars) + 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" role="img">',
        f"<title>{escape(title(figures))}</title>",
        text(0, 15, "A thread opens a gate for 1,000 sleepers.", theme.ink, bold=True),
        text(0, 36, "For how long is it held? Less is better.", theme.soft),
    ]
    for number, one in enumerate(figures.bars):
        lines += row(one, TOP + ROW * number, most, theme)
    return "\n".join([*lines, "</svg>", ""])


def title(figures: Figures) -> str:
    times = (f"{quantity(one.nanoseconds, 'ns')} by {one.who}" for one in figures.bars)
    return f"The opener is held for {', '.join(times)}"


def row(one: Bar, top: int, most: float, theme: Theme) -> list[str]:
    length = max(3.0, LONGEST * one.nanoseconds / most)
    middle = top + ROW // 2 + 4
    colour = theme.ours if one.ours else theme.peer
    ink = theme.ours if one.ours else theme.soft
    return [
        text(0, middle, one.who, ink, bold=one.ours),
        f'<rect x="{BARS_AT}" y="{top + 4}" width="{length:.1f}" height="{ROW - 8}" rx="2" fill="{colour}"/>',
        text(BARS_AT + length + 8, middle, quantity(one.nanoseconds, "ns"), ink, bold=one.ours),
    ]


def text(x: float, y: float, words: str, colour: str, *, size: int = 13, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{weight} fill="{colour}">{escape(words)}</text>'
