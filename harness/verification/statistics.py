"""The interval of a level change in a short, autocorrelated, load-dependent series.

Generalised least squares with one level per known regime, load covariates under a weak prior, first-order
autocorrelation between blocks, and Huber weights against bursts. References: Huber (1981), Robust Statistics, 7.8;
Hamilton (1994), Time Series Analysis, 8.3; Abramowitz & Stegun (1964) 26.7.5 for the quantile of Student's t.
"""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

HUBER_AT = 2.0
"""Residuals beyond this many robust standard deviations count less."""
AUTOCORRELATION_MAX = 0.85
COVARIATE_PRIOR_SD = 1.0
"""Elasticities of log latency to log load lie mostly between 0 and 2, so a standard deviation of 1 is weak."""
NOISE_FLOOR = 1e-6


@dataclass(frozen=True)
class Interval:
    """A level change with its two-sided bounds, in the unit of the series (log ratio, or difference of shares)."""

    point: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """One metric over blocks.

    Attributes:
        values: the metric, one per block.
        position: time of each block in units of the block length.
        regime: number of the level each block belongs to, from 0, ascending; the last one is after the change.
        covariates: centred load features, one row per block.
        robust: whether bursts count less; not for shares, whose worst blocks are what they are about.
    """

    values: Floats
    position: Floats
    regime: NDArray[np.int64]
    covariates: Floats
    robust: bool = True


def level_change(series: Series, alpha: float) -> Interval | None:
    """Change of level from the last regime but one to the last one, at two-sided error `alpha`.

    None when there are too few blocks to say anything: both regimes and one degree of freedom are needed.
    """
    levels = int(series.regime[-1]) + 1
    design = np.hstack([np.eye(levels)[series.regime], series.covariates])
    count, width = len(series.values), levels + series.covariates.shape[1]
    if levels < 2 or count <= levels + 1:
        return None
    prior = np.zeros(width)
    weights, noise, rho = np.ones(count), 1.0, 0.0
    for _ in range(4):
        prior[levels:] = noise / COVARIATE_PRIOR_SD**2
        beta, covariance = _solve(design, series, weights, prior, rho)
        residual = series.values - design @ beta
        rho = _autocorrelation(residual, series.position, levels)
        scaled = _whitened(residual * np.sqrt(weights), series.position, rho)
        free = max(1.0, count - levels - _used(covariance, levels, prior))
        noise = max(NOISE_FLOOR, float(scaled @ scaled) / free)
        weights = _huber(residual) if series.robust else weights
    prior[levels:] = noise / COVARIATE_PRIOR_SD**2
    beta, covariance = _solve(design, series, weights, prior, rho)
    contrast = np.zeros(width)
    contrast[levels - 1], contrast[levels - 2] = 1.0, -1.0
    point = float(contrast @ beta)
    error = sqrt(max(0.0, float(contrast @ covariance @ contrast)) * noise)
    effective = (count - levels) * (1 - rho**2) / (1 + rho**2)
    margin = student_quantile(1 - alpha / 2, max(3.0, effective - series.covariates.shape[1] / 2)) * error
    return Interval(point, point - margin, point + margin)


def student_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t, by the expansion around the normal quantile; within 2 % from 3 degrees of freedom."""
    z = NormalDist().inv_cdf(probability)
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    g4 = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return float(z + g1 / freedom + g2 / freedom**2 + g3 / freedom**3 + g4 / freedom**4)


def _solve(design: Floats, series: Series, weights: Floats, prior: Floats, rho: float) -> tuple[Floats, Floats]:
    """Estimate and its covariance in units of the noise variance."""
    rows = np.column_stack([design, series.values]) * np.sqrt(weights)[:, None]
    white = _whitened(rows, series.position, rho)
    left, right = white[:, :-1], white[:, -1]
    precision = left.T @ left + np.diag(prior + 1e-12)
    covariance: Floats = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    return np.asarray(covariance @ (left.T @ right), dtype=np.float64), covariance


def _whitened(rows: Floats, position: Floats, rho: float) -> Floats:
    """Rows made independent: each less what the one before it foretells, in units of what is left."""
    if rho <= 0:
        return rows
    foretold = np.power(rho, np.diff(position)).reshape((-1,) + (1,) * (rows.ndim - 1))
    white = rows.copy()
    white[1:] = (rows[1:] - foretold * rows[:-1]) / np.sqrt(1 - foretold**2)
    return white


def _used(covariance: Floats, levels: int, prior: Floats) -> float:
    """Degrees of freedom the covariates take: each between 0 and 1 by how far the data beat the prior."""
    return float(sum(1.0 - covariance[i, i] * prior[i] for i in range(levels, len(prior))))


def _autocorrelation(residual: Floats, position: Floats, levels: int) -> float:
    """Correlation of neighbouring blocks, corrected for the bias of a short series (Kendall 1954)."""
    near = np.diff(position) < 1.6
    power = float(residual @ residual)
    if near.sum() < 3 or power <= 0:
        return 0.0
    raw = float((residual[1:] * residual[:-1])[near].sum()) / power * len(residual) / float(near.sum())
    corrected = raw + (1 + 3 * max(0.0, raw) + (levels - 1)) / len(residual)
    return float(np.clip(corrected, 0.0, AUTOCORRELATION_MAX))


def _huber(residual: Floats) -> Floats:
    scale = 1.4826 * float(np.median(np.abs(residual - np.median(residual)))) + NOISE_FLOOR
    return np.minimum(1.0, HUBER_AT * scale / np.maximum(np.abs(residual), NOISE_FLOOR))
