"""Reports: one self-contained HTML file of text, tables and plots."""

import base64
import io
from html import escape
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

__all__ = ["Report"]

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2530; background: #fff;
       max-width: 62rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; margin: 0 0 .5rem; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
p { max-width: 46rem; } p.lead { font-size: 1.05rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; }
th { border-bottom: 2px solid #1c2530; vertical-align: bottom; white-space: pre-line; }
td { border-bottom: 1px solid #e3e7ec; }
th:first-child, td:first-child { text-align: left; }
tr.total td { border-top: 2px solid #1c2530; font-weight: 600; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; height: auto; }
figcaption { color: #4c5866; max-width: 46rem; }
dl { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 1.5rem 0; }
dt { color: #4c5866; font-size: .8rem; } dd { margin: 0; font-size: 1.45rem; }
dd small { display: block; font-size: .8rem; color: #4c5866; }
"""


class Report:
    """A page that is written top to bottom.

    ::

        report = Report("Title", lead="What it shows.")
        report.numbers([("cosine", "0.994", "target 0.993")])
        report.heading("Heads")
        report.table(["head", "cosine"], [["0", "0.99"]])
        report.plot(figure, caption="...")
        report.write(path)

    All text is escaped; plots are embedded, so that the file can be sent to anybody as it is.

    Parameters
    ----------
    title, lead : str
    """

    def __init__(self, title, *, lead):
        self.title = title
        self._parts = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{escape(lead)}</p>']

    def heading(self, text):
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, paragraph):
        self._parts.append(f"<p>{escape(paragraph)}</p>")

    def numbers(self, entries):
        """The figures that matter most: (name, value, remark) each."""
        cells = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(remark)}</small></dd>"
            f"</div>" for name, value, remark in entries)
        self._parts.append(f"<dl>{cells}</dl>")

    def table(self, header, rows, *, total=None):
        """Rows of text; ``total`` is one more row, set apart."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        lines = [_row(cells) for cells in rows]
        if total is not None:
            lines.append(_row(total, ' class="total"'))
        self._parts.append(f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>'
                           f'{"".join(lines)}</tbody></table></div>')

    def plot(self, figure: Figure, *, caption):
        """A matplotlib figure, as SVG."""
        buffer = io.BytesIO()
        # Fixed ids, and no date: the same figures give the same bytes.
        with matplotlib.rc_context({"svg.hashsalt": self.title, "svg.fonttype": "path"}):
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        # As an image each plot keeps its ids to itself.
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        self._parts.append(
            f'<figure><img alt="{escape(caption, quote=True)}" '
            f'src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>")

    def write(self, path):
        """Write the page, and the folders above it."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        body = "\n".join(self._parts)
        path.write_text(
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f"<title>{escape(self.title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
            f"<body>\n{body}\n</body>\n</html>\n", encoding="utf-8")


def _row(cells, attributes=""):
    return f"<tr{attributes}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
