"""Plots of the streaming engine's figures. Each function returns a matplotlib figure."""

from matplotlib.figure import Figure

__all__ = ["ttft_plot"]

LINES = {
    "compute": ("compute all", "#a3acb7", "-"),
    "stream": ("stream all", "#a3acb7", "--"),
    "cachegen": ("CacheGen's rule", "#d9922e", "--"),
    "hybrid": ("static hybrid", "#6fa3e0", "--"),
    "paper": ("refinement with barriers", "#6fa3e0", "-"),
    "cake": ("Cake", "#d9922e", "-"),
    "ours": ("this scheduler", "#17407c", "-"),
}

SECONDS = (2, 3, 5, 10, 20, 30)


def ttft_plot(rows, crossover):
    """Time to first token over the link's rate, one line per scheduler."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    links = list(rows)
    for name, (label, color, style) in LINES.items():
        axes.plot(links, [rows[link]["seconds"][name] for link in links], style, color=color,
                  label=label, marker="o", markersize=3.5,
                  linewidth=2.2 if name == "ours" else 1.4)
    axes.axvline(crossover, color="#e3e7ec", linewidth=1, zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(links, [str(link) for link in links])
    axes.set_xticks([], minor=True)
    axes.set_yticks(SECONDS, [str(second) for second in SECONDS])
    axes.set_yticks([], minor=True)
    axes.set_xlabel("link, Mbit/s")
    axes.set_ylabel("time to first token, s")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return figure
