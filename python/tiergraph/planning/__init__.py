"""Which hardware a training job needs: throughput for a dollar, and what limits it.

After Hyperion (ICDE 2025, sections III-C and VI): a few batches say what a job takes (`job`), how
often it wants rows that memory may have or not (`misses`), and a model says what becomes of it on
other hardware (`plan`). `passes` is the same of an algorithm that goes over the whole graph.
"""

from .job import Job, measure_job
from .passes import PassEstimate, plan_passes
from .plan import Estimate, MoreMemory, Plan, plan

__all__ = [
    "Estimate",
    "Job",
    "MoreMemory",
    "PassEstimate",
    "Plan",
    "measure_job",
    "plan",
    "plan_passes",
]
