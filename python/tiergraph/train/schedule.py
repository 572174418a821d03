"""The step size over a run: a function of how far it is, so that a resumed run is the run."""

from __future__ import annotations

import math

from .options import TrainOptions


def rate(options: TrainOptions, done: float) -> float:
    """The step size after `done` epochs, a fraction within one included.

    It grows linearly over `warmup` epochs. `cosine` then falls from `lr` to 0 at the end of
    `epochs` (Loshchilov and Hutter, SGDR, 2017, without restarts); `step` is multiplied by
    `step_factor` every `step_epochs`.
    """
    if done < options.warmup:
        return options.lr * done / options.warmup
    if options.schedule == "cosine":
        span = max(options.epochs - options.warmup, 1)
        share = min((done - options.warmup) / span, 1.0)
        return options.lr * (1 + math.cos(math.pi * share)) / 2
    if options.schedule == "step":
        every = options.step_epochs or max(options.epochs // 3, 1)
        return float(options.lr * options.step_factor ** int((done - options.warmup) // every))
    return options.lr
