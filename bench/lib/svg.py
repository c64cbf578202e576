"""Charts as SVG files, written without any library."""

import math
from xml.sax.saxutils import escape

COLOURS = ["#1b6ca8", "#c8553d", "#3a7d44", "#7a4fa3", "#b8860b"]
WIDTH, HEIGHT, PANEL_GAP = 380, 280, 30
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 48, 44


def _ticks(high):
    """Round values from 0 to at least `high`, about five of them."""
    step = 10 ** math.floor(math.log10(high / 4))
    for factor in (1, 2, 2.5, 5, 10):
        if high / (step * factor) <= 5:
            step *= factor
            break
    return [step * index for index in range(math.ceil(high / step) + 1)]


def _panel(x, panel, labels):
    """One chart: panel = {"title", "unit", "series": {name: [value for each label]}}."""
    ticks = _ticks(max(max(values) for values in panel["series"].values()))
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(index, value):
        across = x + LEFT + (index + 0.5) * inner_width / len(labels)
        return across, TOP + inner_height * (1 - value / ticks[-1])

    parts = [f'<text x="{x + LEFT}" y="16" class="title">{escape(panel["title"])}</text>']
    for tick in ticks:
        y = at(0, tick)[1]
        parts.append(f'<line x1="{x + LEFT}" x2="{x + WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{x + LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts.append(
        f'<text transform="translate({x + 14},{TOP + inner_height / 2}) rotate(-90)" text-anchor="middle">'
        f'{escape(panel["unit"])}</text>'
    )
    for index, label in enumerate(labels):
        parts.append(
            f'<text x="{at(index, 0)[0]:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{escape(label)}</text>'
        )
    for order, (name, values) in enumerate(panel["series"].items()):
        colour = COLOURS[order % len(COLOURS)]
        points = [at(index, value) for index, value in enumerate(values)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in points]
        if len(panel["series"]) > 1:
            parts.append(f'<text x="{x + LEFT + order * 110}" y="34" fill="{colour}">{escape(name)}</text>')
    return parts


def line_charts(path, caption, labels, panels):
    """Writes charts side by side over the same labels; every axis starts at 0."""
    width = len(panels) * WIDTH + (len(panels) - 1) * PANEL_GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}">',
        "<style>text{font:12px sans-serif;fill:#333}.title{font-weight:bold}.grid{stroke:#ddd}</style>",
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
        f"<title>{escape(caption)}</title>",
    ]
    for index, panel in enumerate(panels):
        parts += _panel(index * (WIDTH + PANEL_GAP), panel, labels)
    parts.append(f'<text x="{width / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(caption)}</text></svg>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n")


def bar_chart(path, caption, labels, series):
    """Bars side by side for each label over a logarithmic axis; None leaves a gap. series = {name: [value for each
    label]}."""
    values = [value for heights in series.values() for value in heights if value]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    width = LEFT + RIGHT + max(360, len(labels) * (14 * len(series) + 16))
    inner_width, inner_height = width - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def height(value):
        return inner_height * (math.log10(value) - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}">',
        "<style>text{font:12px sans-serif;fill:#333}.grid{stroke:#ddd}</style>",
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
        f"<title>{escape(caption)}</title>",
        f'<text x="{LEFT}" y="16" style="font-weight:bold">{escape(caption)}</text>',
    ]
    for power in range(low, high + 1):
        y = TOP + inner_height - height(10**power)
        parts.append(f'<line x1="{LEFT}" x2="{width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    slot = inner_width / len(labels)
    bar = slot * 0.8 / len(series)
    for order, (name, heights) in enumerate(series.items()):
        colour = COLOURS[order % len(COLOURS)]
        parts.append(f'<text x="{LEFT + order * 150}" y="34" style="fill:{colour}">{escape(name)}</text>')
        for index, value in enumerate(heights):
            if value:
                x, tall = LEFT + slot * (index + 0.1) + bar * order, height(value)
                y = TOP + inner_height - tall
                parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{bar:.1f}" height="{tall:.1f}" fill="{colour}"/>')
    for index, label in enumerate(labels):
        x = LEFT + slot * (index + 0.5)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{escape(label)}</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*parts, "</svg>"]) + "\n")
