"""Tables as Markdown writes them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Table:
    """Rows under column names; the first column is text, all others are numbers.

    Attributes:
        columns: Their names.
        rows: Their cells.
    """

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """Add a row.

        Raises:
            ValueError: It has more or fewer cells than there are columns.
        """
        if len(cells) != len(self.columns):
            message = f"{len(cells)} cells under {len(self.columns)} columns: {cells}"
            raise ValueError(message)
        self.rows.append(cells)

    def __str__(self) -> str:
        alignment = ("---", *["---:"] * (len(self.columns) - 1))
        return "\n".join(
            f"| {' | '.join(cells)} |" for cells in (self.columns, alignment, *self.rows)
        )
