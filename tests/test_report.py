"""Reports: escaped text, embedded plots, the same bytes again."""

from html.parser import HTMLParser

from matplotlib.figure import Figure

from sim.report import Report


class References(HTMLParser):
    """Collects what a page would load from elsewhere, and checks that tags are closed."""

    def __init__(self):
        super().__init__()
        self.sources = []
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.sources += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def page(folder, title="A & B"):
    figure = Figure(figsize=(2, 2))
    figure.add_subplot().plot([1, 2], [3, 4])
    report = Report(title, lead="<lead>")
    report.heading("One")
    report.text("x < y")
    report.numbers([("name", "1.0", "of 2")])
    report.table(["a\nb", "c"], [["<i>", "1"]], total=["all", "1"])
    report.plot(figure, caption='a "plot"')
    report.write(folder / "deep" / "report.html")
    return (folder / "deep" / "report.html").read_text(encoding="utf-8")


def test_page_stands_alone(tmp_path):
    text = page(tmp_path)
    parser = References()
    parser.feed(text)
    assert parser.open == []
    assert len(parser.sources) == 1
    assert parser.sources[0].startswith("data:image/svg+xml;base64,")
    assert "<i>" not in text
    assert "&lt;lead&gt;" in text
    assert "A &amp; B" in text


def test_same_content_gives_same_bytes(tmp_path):
    assert page(tmp_path / "a") == page(tmp_path / "b")
    assert page(tmp_path / "a") != page(tmp_path / "b", title="C")
