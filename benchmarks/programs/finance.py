"""Finance, as a newcomer writes it."""

from __future__ import annotations

import math

import numpy as np


def american_put(spot, strike, rate, sigma, years, steps):
    """A put that may be exercised early, by a binomial tree."""
    dt = years / steps
    up = math.exp(sigma * math.sqrt(dt))
    down = 1 / up
    p = (math.exp(rate * dt) - down) / (up - down)
    discount = math.exp(-rate * dt)
    prices = spot * up ** np.arange(steps, -steps - 1, -2.0)
    values = np.maximum(strike - prices, 0)
    for _ in range(steps):
        prices = prices[:-1] * down
        values = discount * (p * values[:-1] + (1 - p) * values[1:])
        values = np.maximum(values, strike - prices)
    return values[0]


def asian_call(spot, strike, rate, sigma, years, normals):
    """A call on the average price, by simulation with given normal numbers."""
    paths, steps = normals.shape
    dt = years / steps
    total = 0.0
    for i in range(paths):
        price, average = spot, 0.0
        for j in range(steps):
            price *= math.exp((rate - 0.5 * sigma**2) * dt + sigma * math.sqrt(dt) * normals[i, j])
            average += price
        average /= steps
        total += max(average - strike, 0.0)
    return math.exp(-rate * years) * total / paths


def implied_volatility(prices, spot, strikes, rate, years):
    """Newton's method on the formula of Black and Scholes, for many options at once."""
    sigma = np.full(len(prices), 0.2)
    for _ in range(20):
        d1 = (np.log(spot / strikes) + (rate + 0.5 * sigma**2) * years) / (sigma * np.sqrt(years))
        d2 = d1 - sigma * np.sqrt(years)
        cdf1 = np.array([0.5 * (1 + math.erf(d / math.sqrt(2))) for d in d1])
        cdf2 = np.array([0.5 * (1 + math.erf(d / math.sqrt(2))) for d in d2])
        value = spot * cdf1 - strikes * math.exp(-rate * years) * cdf2
        vega = spot * np.sqrt(years) * np.exp(-0.5 * d1**2) / np.sqrt(2 * np.pi)
        sigma = sigma - (value - prices) / vega
    return sigma


def drawdown(prices):
    """The largest loss from a peak, and when it began and ended."""
    peak, start = prices[0], 0
    worst, begin, end = 0.0, 0, 0
    for day in range(len(prices)):
        if prices[day] > peak:
            peak = prices[day]
            start = day
        loss = 1 - prices[day] / peak
        if loss > worst:
            worst, begin, end = loss, start, day
    return worst, begin, end


def ewma_covariance(returns, decay):
    """Exponentially weighted covariances of several assets, at each day."""
    days, assets = returns.shape
    covariance = np.zeros((assets, assets))
    history = []
    for day in range(days):
        r = returns[day]
        covariance = decay * covariance + (1 - decay) * np.outer(r, r)
        history.append(np.sqrt(np.diag(covariance)))
    return covariance, np.array(history)


def arguments(name):
    """Arguments of a size that takes a while."""
    rng = np.random.default_rng(0)
    strikes = np.linspace(90, 110, 40)
    return {
        "american_put": (100.0, 105.0, 0.05, 0.3, 1.0, 400),
        "asian_call": (100.0, 100.0, 0.03, 0.2, 1.0, rng.normal(size=(500, 100))),
        "implied_volatility": (np.maximum(100 - strikes, 0) + 8.0, 100.0, strikes, 0.02, 1.0),
        "drawdown": (np.exp(np.cumsum(rng.normal(0, 0.01, 50_000))),),
        "ewma_covariance": (rng.normal(0, 0.01, (500, 12)), 0.94),
    }[name]
