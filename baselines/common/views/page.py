"""Self-contained HTML pages: their parts, their style and embedded pictures.

All text is escaped, because it comes from files that others may have written.
"""

import io
import os
import re
from html import escape

START = '<!DOCTYPE html>\n<html lang="en">\n<!-- python -m baselines.report -->\n'
STYLE = """
:root { color-scheme: light dark; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62em; margin: auto;
  padding: 1em; overflow-wrap: anywhere; }
h1, h2 { line-height: 1.2; }
h2 { font-size: 1.2em; margin-top: 2em; }
.pictures { display: flex; flex-wrap: wrap; gap: 1em; }
figure { margin: 0; }
svg { max-width: 100%; height: auto; background: white; border-radius: 4px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: .2em .8em .2em 0; text-align: left; white-space: nowrap;
  font-variant-numeric: tabular-nums; border-bottom: 1px solid var(--line); }
td:nth-child(2):last-child { white-space: normal; } /* Other tables scroll. */
pre { padding: .5em; border: 1px solid var(--line); border-radius: 4px;
  margin: .2em 0 1em; user-select: all; white-space: pre-wrap; }
summary { cursor: pointer; }
"""


def is_report(path) -> bool:
    """Whether a path is a page that ``make_page`` made."""
    if not os.path.isfile(path):  # Opening a pipe would wait.
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(START)) == START.encode()
    except OSError:
        return False


def table(header, rows) -> str:
    """Returns an HTML table.

    Args:
        header: names of the columns, or None.
        rows: lists of cells; the first cell of each names the row.
    """
    lines = ['<div class="wide"><table>']
    if header:
        cells = "".join(f"<th>{escape(name)}</th>" for name in header)
        lines.append(f"<tr>{cells}</tr>")
    for name, *values in rows:
        cells = "".join(f"<td>{escape(str(value))}</td>" for value in values)
        lines.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    return "\n".join([*lines, "</table></div>"])


def heading(text) -> str:
    return f"<h2>{escape(text)}</h2>"


def paragraph(text) -> str:
    return f"<p>{escape(text)}</p>"


def make_page(title, parts) -> str:
    """Returns the page; ``parts`` are HTML, and ``title`` is plain text."""
    return "\n".join(
        [
            f'{START}<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>",
            f"<body>\n<h1>{escape(title)}</h1>",
            *parts,
            "</body>\n</html>\n",
        ]
    )


def svg(figure) -> str:
    """Returns a figure as an SVG element for a page."""
    text = io.StringIO()
    nothing = dict.fromkeys(["Creator", "Date", "Format", "Type"])
    figure.savefig(text, format="svg", metadata=nothing)
    text = text.getvalue()
    # Numbered ids would clash with those of other pictures; nothing refers to them.
    return re.sub(r' id="[\w.]*_\d+"', "", text[text.index("<svg") :])
