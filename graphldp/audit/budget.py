"""How often an audit may accuse an honest sampler, and where each number of the tests comes from.

One run of `ldp audit` decides FAMILIES kinds of tests for at most MAX_ROWS rows. Within a row and a family every
p-value is multiplied by the number of its tests (Bonferroni), and the smallest is compared with ALPHA. The tests of
calls are made of up to PROBES devices in a row, and count for so many; a row of several answers counts for MOST_ANSWERS
rows. So an honest
implementation is accused in at most FAMILIES x MAX_ROWS x ALPHA runs, times the inflation that the chi-square
approximation costs at so small a level with cells of MIN_EXPECTED (below 10), which stays under FALSE_ALARMS.
"""

from __future__ import annotations

from graphldp.errors import OptionError

__all__ = [
    "ALPHA",
    "CHI_SQUARE_INFLATION",
    "CONFIDENCE",
    "CONVICTION_ALPHA",
    "FALSE_ALARMS",
    "FAMILIES",
    "LOSS_TOLERANCE",
    "MAX_ROWS",
    "MIN_EXPECTED",
    "MOST_ANSWERS",
    "MOST_VALUES",
    "PROBES",
    "QUANTILES",
    "QUANTILE_TOLERANCE",
    "RARE_TOLERANCE",
    "SEVERAL_DRAWS_TOLERANCE",
    "TABLE_ROWS",
    "check_samples",
    "most_samples",
]

FALSE_ALARMS = 1e-3  # an honest program may be accused in one of a thousand audits
ALPHA = 1e-8  # per row and family of tests
FAMILIES = ("cells", "chi-square", "indices", "ks", "pooled", "calls", "empirical")
MAX_ROWS = 1000  # mechanisms x budgets of one run
CHI_SQUARE_INFLATION = 10.0  # by how much the chi-square approximation may understate a tail of 1e-8
PROBES = 10  # of a row, at most: each level, all dimensions, another range, other options
MOST_ANSWERS = 5  # that a row is made of, and so counts for
MOST_VALUES = 2**22  # of one test's reports: with very many dimensions fewer people are asked
MIN_EXPECTED = 400.0  # smaller cells are pooled: a Poisson of 400 is close enough to normal 6 deviations out

CONFIDENCE = 0.95  # that all printed lower bounds of a table hold at once
TABLE_ROWS = 200  # of such a table; each row's bound has an error of (1 - CONFIDENCE) / TABLE_ROWS
CONVICTION_ALPHA = 1e-8  # of the one that convicts: of samples alone, never of the printed one

LOSS_TOLERANCE = 1e-9  # relative; the rounding of float64 logs, so that a loss equal to the claim keeps it

QUANTILES = 2**18  # evenly spaced uniform numbers that are pushed through a sampler's map
QUANTILE_TOLERANCE = 8 / QUANTILES  # a cell made of up to 8 intervals of uniform numbers is off by no more
SEVERAL_DRAWS_TOLERANCE = 2e-3  # the volume of a box, by 2^18 low-discrepancy points in up to 14 dimensions
RARE_TOLERANCE = 0.1  # relative, for cells rarer than 2^-10, counted in octaves of uniform numbers


def most_samples(values: float) -> int:
    """Return how many reports of so many values a test draws at most."""
    return max(2000, int(MOST_VALUES // values))


def check_samples(samples: int) -> None:
    """Refuse more reports than any test draws."""
    if samples > MOST_VALUES:
        raise OptionError(f"audit: samples may be at most {MOST_VALUES:,}, got {samples:,}: no test draws more")
