"""Use a loop in a model of PyMC: it becomes an operation of PyTensor, with a gradient, and compiles to Numba."""

import numpy as np
import nutpie
import pymc as pm

from srcdiff.bridges.pytensor import as_op


def reservoir(rain, inflow, outflow, limit):
    """The level of water behind a dam on each day. Water above the limit runs over."""
    levels = np.empty(len(rain))
    level = 1.0
    for day in range(len(rain)):
        level += inflow * rain[day] - outflow * level
        if level > limit:
            level = limit + 0.1 * (level - limit)
        levels[day] = level
    return levels


random = np.random.default_rng(0)
rain = random.gamma(0.5, 2.0, size=200)
measured = reservoir(rain, 0.4, 0.3, 2.0) + 0.2 * random.normal(size=200)

levels = as_op(reservoir)
with pm.Model() as model:
    inflow = pm.LogNormal("inflow", -1.0, 0.5)
    outflow = pm.Beta("outflow", 2.0, 4.0)
    limit = pm.LogNormal("limit", 0.5, 0.3)
    pm.Normal("measured", levels(rain, inflow, outflow, limit), 0.2, observed=measured)

trace = nutpie.sample(
    nutpie.compile_pymc_model(model), draws=500, tune=500, chains=2, cores=2, seed=1, progress_bar=False
)
for name, true in {"inflow": 0.4, "outflow": 0.3, "limit": 2.0}.items():
    drawn = trace.posterior[name].values
    print(f"{name:8} {drawn.mean():.3f} +- {drawn.std():.3f}, and it was {true}")
    assert abs(drawn.mean() - true) < 4.0 * drawn.std()
