"""A plan as a picture: what each number of drives gives, and what it gives for a dollar."""

from __future__ import annotations

from pathlib import Path

from .. import pictures
from .plan import Plan


def draw(plan: Plan, path: Path) -> None:
    """Writes `path`, in the format that its suffix says (`.png`, `.svg`, `.pdf`)."""
    figure = pictures.figure(9, 3)
    times, rate, worth = figure.subplots(1, 3)
    drives = [estimate.drives for estimate in plan.estimates]
    for stage in ("drive", "link", "train"):
        times.plot(
            drives, [getattr(e, f"{stage}_seconds") * 1e3 for e in plan.estimates], label=stage
        )
    times.set_ylabel("ms a batch")
    times.legend()
    rate.plot(drives, [estimate.seeds_per_second for estimate in plan.estimates])
    rate.set_ylabel("seeds a second")
    worth.plot(drives, [estimate.seeds_per_second_and_dollar for estimate in plan.estimates])
    worth.set_ylabel("seeds a second for a dollar")
    for axes in (times, rate, worth):
        axes.set_xlabel(f"drives ({plan.best.drive})")
        axes.axvline(plan.best.drives, linestyle=":", color="gray")
        axes.set_ylim(bottom=0)
    pictures.save(figure, path, "the plan's curve")
