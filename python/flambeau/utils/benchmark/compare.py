"""Measurements side by side."""
from .timer import unit_of

__all__ = ["Compare"]


class Compare:
    """A table: a row for each sub_label (of each number of threads), a column for each description."""

    def __init__(self, results):
        self._results, self._digits = list(results), 4

    def extend_results(self, results):
        self._results.extend(results)

    def trim_significant_figures(self):
        """Shows three digits."""
        self._digits = 3

    def colorize(self, rowwise=False):
        """Has no effect: the table has no colours."""

    def __str__(self):
        labels = list(dict.fromkeys(m.label for m in self._results))
        return "\n\n".join(self._table(label) for label in labels)

    def print(self):
        print(self)

    def _table(self, label):
        chosen = [m for m in self._results if m.label == label]
        columns = list(dict.fromkeys(m.description or "" for m in chosen))
        unit, size = unit_of(min(m.median for m in chosen))
        rows = {}
        for m in chosen:
            rows.setdefault((m.num_threads, m.sub_label or ""), {})[m.description or ""] = m.median / size
        table = [["", *columns]]
        for (threads, name), cells in sorted(rows.items(), key=lambda row: row[0][0]):
            values = [f"{cells[c]:.{self._digits}g}" if c in cells else "" for c in columns]
            table.append([f"{name} ({threads} threads)", *values])
        widths = [max(map(len, column)) for column in zip(*table)]
        lines = [" | ".join(cell.ljust(w) if k == 0 else cell.rjust(w)
                            for k, (cell, w) in enumerate(zip(row, widths))) for row in table]
        return "\n".join([f"[{label}]", *lines, f"Times are in {unit}."])
