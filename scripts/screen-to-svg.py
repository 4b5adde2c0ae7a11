"""Draws what a terminal shows as an SVG file: scripts/terminal-screens starts it.

Reads the output of `tmux capture-pane -e` from standard input. Arguments: columns, rows, title.
Knows bold, dim and red, which are all that sidon prints.
"""
import re
import sys
from html import escape

CELL, LINE, EDGE = 7.8, 17, 14
columns, rows, title = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
lines = sys.stdin.read().split("\n")[:rows]
width, height = 2 * EDGE + columns * CELL, 2 * EDGE + (rows + 1) * LINE
print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
      f'height="{height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13" '
      f'role="img"><title>{escape(title)} at {columns}x{rows}</title>')
print(f'<rect width="100%" height="100%" rx="6" fill="#14181d"/>')
print(f'<text x="{EDGE}" y="{EDGE + 10}" fill="#8fa3b8">$ {escape(title)}</text>')
style = set()
for row, line in enumerate(lines):
    column = 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if code:
            for number in code[1].split(";") or ["0"]:
                if number in ("", "0"):
                    style.clear()
                else:
                    style.add(number)
            continue
        if part.strip():
            colour = "#ff7b72" if "31" in style else "#8fa3b8" if "2" in style else "#e6edf3"
            weight = ' font-weight="bold"' if "1" in style else ""
            start = len(part) - len(part.lstrip())
            text = part.strip()
            print(f'<text x="{EDGE + (column + start) * CELL:.1f}" y="{EDGE + 10 + (row + 1) * LINE}" '
                  f'fill="{colour}"{weight} xml:space="preserve" textLength="{len(text) * CELL:.1f}">{escape(text)}</text>')
        column += len(part)
print("</svg>")
