#!/usr/bin/env python3
"""Draws the first chart of a page as a picture of its own: docs/ladder.svg, from kept records.

threadtoll report docs/results/epyc-2cpu/survey.jsonl.gz --html survey.html
python3 ci/long/ladder.py survey.html >docs/ladder.svg

Leaves out twins, which older runs had: rows that measure the source of another row once more.
"""

import re
import sys

WIDTH = 920
STYLE = """
text { font: 13px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1c1f24 }
.tick, .figure { fill: #5d6470 } .middle { text-anchor: middle } .label { text-anchor: end }
.grid, .span { stroke: #e2e0da } .span { stroke-width: 5px; stroke-linecap: round }
.band { fill: none } .c0 { --c: #0072b2 } .c1 { --c: #d55e00 } .c2 { --c: #00845f }
.interval { stroke: var(--c); stroke-width: 2px } .mark { fill: var(--c); stroke: #fff }
.hollow .mark { fill: #fff; stroke: #1c1f24; stroke-width: 1.6px }
"""

page = open(sys.argv[1], encoding="utf-8").read()
shapes = re.search(r'<svg class="shapes".*?>(.*?)</svg>', page, re.S)[1]
figure = re.search(r'<figure class="chart list" style="--left:(.*?)px;--right:(.*?)px">(.*?)</figure>', page, re.S)
left, right = float(figure[1]), float(figure[2])
keys = re.findall(r'<svg class="key (\w+) (\w+)".*?</svg>(.*?)</li>', figure[3], re.S)
plot = re.search(r'<svg class="plot" height="(.*?)".*?aria-label="(.*?)">(.*)</svg>', figure[3], re.S)
height, label, drawing = float(plot[1]), plot[2], plot[3]
drawing = re.sub(r"<title>.*?</title>", "", drawing, flags=re.S).replace("\n", "")

PITCH = 28
twins = [float(y) // PITCH for y in re.findall(r'class="label"[^>]*y="([\d.]+)">[^<]*-twin<', drawing)]
height -= PITCH * len(twins)


def moved(element):
    """An element of the drawing, further up by the twins above it; nothing if it is of a twin."""
    if 'class="grid"' in element[0]:
        return re.sub(r'y2="[\d.]+"', f'y2="{height:g}"', element[0])
    at = re.search(r' y1?="(-?[\d.]+)"', element[0])
    if not at:
        return element[0]
    row = float(at[1]) // PITCH
    if row in twins:
        return ""
    up = PITCH * sum(twin < row for twin in twins)
    return re.sub(r' (y[12]?)="(-?[\d.]+)"', lambda place: f' {place[1]}="{float(place[2]) - up:g}"', element[0])


drawing = re.sub(r"<(line|text|use|rect)\b[^>]*>(?:[^<]*</\1>)?", moved, drawing)

top = 70
legend = "".join(
    f'<g class="{colour}"><use class="mark" href="#{shape}" x="{left + 110 * nth}" y="20"/></g>'
    f'<text x="{left + 12 + 110 * nth}" y="24">{name.strip()}</text>'
    for nth, (shape, colour, name) in enumerate(keys)
)
print(
    f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top + height + 34:.0f}" role="img" '
    f'aria-label="{label}"><style>{STYLE}</style><defs>{shapes}</defs>'
    f'<rect width="100%" height="100%" rx="8" fill="#fff"/>{legend}'
    f'<svg x="{left}" y="{top}" width="{WIDTH - left - right}" height="{height}" overflow="visible">{drawing}</svg></svg>'
)
