"""Who sizes the files."""

from dataclasses import dataclass

from tallymark.bench.sizing.shape import Shape
from tallymark.engine.settings import SizingSettings

BUDGETS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)
"""Of the frontier."""

BARRED_BUDGETS = (2.0, 4.0, 8.0, 16.0)
"""Of these, those that are held to the exact solver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    name: str
    title: str
    budget: float | None = None
    """None where there is none to choose."""

    def settings(self, shape: Shape) -> SizingSettings | None:
        """None: nobody sizes."""
        if self.name == "plain":
            return None
        return SizingSettings(
            max_file_bytes=shape.max_file_bytes,
            small_file_bytes=shape.small_file_bytes,
            policy="hudi" if self.name == "hudi" else "balanced",
            rewrite_budget=SizingSettings().rewrite_budget if self.budget is None else self.budget,
        )


PLAIN = Side(name="plain", title="no sizing")
HUDI = Side(name="hudi", title='policy "hudi"')
BALANCED = Side(name="balanced", title='policy "balanced", default budget')

SIDES = (BALANCED, HUDI, PLAIN)


def balanced(budget: float) -> Side:
    return Side(name=f"balanced-{budget:g}", title=f'policy "balanced", budget {budget:g}', budget=budget)
