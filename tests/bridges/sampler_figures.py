"""The speed of samplers with gradients by srcdiff, compared with PyMC with nutpie, and NumPyro.

Run it by `python -m tests.bridges.sampler_figures`, with PyMC, nutpie, NumPyro and JAX installed.

All samplers run in one process, one after the other, with equal numbers of chains, draws and processors. The effective
sample size is that of the worst parameter. Compilation times are printed separately. Of at most three runs, as many as
start within the first 10 seconds, the fastest counts.
"""

from __future__ import annotations

import os
import time

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import nutpie
import pymc as pm
import pytensor
import pytensor.tensor as pt
from scipy.optimize import approx_fprime

from srcdiff.bridges.nutpie import model as source_model
from srcdiff.bridges.pytensor import as_op

jax.config.update("jax_enable_x64", True)
CHAINS, CORES, TUNE, DRAWS = 4, 2, 1000, 1000

# -- gradients of a black box ----------------------------------------------------------------------------------------


def fit(theta, x, y):
    """The log likelihood of a linear model with many slopes."""
    return -0.5 * np.sum((y - x @ theta) ** 2)


class BlackBox(pytensor.graph.op.Op):
    """The usual way to wrap a function that PyTensor does not know: its gradient is another black box."""

    def __init__(self, x, y):
        self.x, self.y, self.gradient = x, y, Differences(x, y)

    def make_node(self, theta):
        return pytensor.graph.basic.Apply(self, [pt.as_tensor_variable(theta)], [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(fit(inputs[0], self.x, self.y))

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0] * self.gradient(*inputs)]


class Differences(pytensor.graph.op.Op):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def make_node(self, theta):
        return pytensor.graph.basic.Apply(self, [theta], [pt.dvector()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = approx_fprime(inputs[0], fit, 1e-8, self.x, self.y)


def black_box(parameters: int = 20, rows: int = 200) -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(rows, parameters)), random.normal(size=rows)
    at = random.normal(size=parameters)
    theta = pt.dvector("theta")
    gradients = {}
    for name, value in {"finite differences": BlackBox(x, y)(theta), "as_op": as_op(fit)(theta, x, y)}.items():
        f = pytensor.function([pytensor.In(theta, borrow=True)], [value, pytensor.grad(value, theta)])
        f.trust_input = True
        gradients[name] = f(at)[1]
        count = 2000
        least = min(_seconds(lambda f=f, count=count: [f(at) for _ in range(count)])[0] for _ in range(5))
        print(f"{parameters} parameters, {name}: {count / least:.0f} gradients per second")
    np.testing.assert_allclose(*gradients.values(), rtol=1e-3, atol=1e-3)


# -- eight schools ---------------------------------------------------------------------------------------------------

MEASURED = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(p, measured, errors):
    tau = np.exp(p["log_tau"])
    total = -0.5 * (p["mu"] / 5.0) ** 2 + p["log_tau"] - np.log(1.0 + (tau / 5.0) ** 2)
    for k in range(len(measured)):
        total -= 0.5 * p["eta"][k] ** 2
        total -= 0.5 * ((measured[k] - p["mu"] - tau * p["eta"][k]) / errors[k]) ** 2
    return total


def schools_of_srcdiff():
    return source_model(schools, {"mu": 0.0, "log_tau": 0.0, "eta": np.zeros(8)}, MEASURED, ERRORS)


def schools_of_pymc():
    with pm.Model() as model:
        mu, tau, eta = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5), pm.Normal("eta", shape=8)
        pm.Normal("y", mu + tau * eta, ERRORS, observed=MEASURED)
    return nutpie.compile_pymc_model(model)


def schools_of_numpyro():
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        eta = numpyro.sample("eta", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(mu + tau * eta, ERRORS), obs=MEASURED)


# -- Lotka-Volterra: Runge-Kutta steps in a loop ---------------------------------------------------------------------

YEARS, STEPS, STEP = 20, 10, 0.1
NAMES = ["a", "b", "c", "d", "u", "v", "sigma"]
CENTRES = np.log([0.55, 0.03, 0.8, 0.025, 30.0, 5.0, 0.25])
WIDTHS = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5])


def populations(q, years, steps, step):
    """The populations each year, by the classical Runge-Kutta method; `q` are the rates and the start."""
    found = np.empty((years + 1, 2))
    u, v = q[4], q[5]
    found[0, 0], found[0, 1] = u, v
    for year in range(years):
        for _ in range(steps):
            u1, v1 = (q[0] - q[1] * v) * u, (q[3] * u - q[2]) * v
            ua, va = u + 0.5 * step * u1, v + 0.5 * step * v1
            u2, v2 = (q[0] - q[1] * va) * ua, (q[3] * ua - q[2]) * va
            ub, vb = u + 0.5 * step * u2, v + 0.5 * step * v2
            u3, v3 = (q[0] - q[1] * vb) * ub, (q[3] * ub - q[2]) * vb
            uc, vc = u + step * u3, v + step * v3
            u4, v4 = (q[0] - q[1] * vc) * uc, (q[3] * uc - q[2]) * vc
            u += step / 6.0 * (u1 + 2.0 * u2 + 2.0 * u3 + u4)
            v += step / 6.0 * (v1 + 2.0 * v2 + 2.0 * v3 + v4)
        found[year + 1, 0], found[year + 1, 1] = u, v
    return found


def counted():
    random = np.random.default_rng(1)
    return np.log(populations(np.exp(CENTRES), YEARS, STEPS, STEP)) + 0.25 * random.normal(size=(YEARS + 1, 2))


def hunting(log_q, logs, centres, widths, years, steps, step):
    q = np.exp(log_q)
    total = -0.5 * np.sum(((log_q - centres) / widths) ** 2)
    found = populations(q, years, steps, step)
    for year in range(years + 1):
        for which in range(2):
            total -= log_q[6] + 0.5 * ((logs[year, which] - np.log(found[year, which])) / q[6]) ** 2
    return total


def hunting_of_srcdiff(logs):
    return source_model(hunting, CENTRES, logs, CENTRES, WIDTHS, YEARS, STEPS, STEP, jitter=0.2)


def hunting_of_pymc(logs, *, op):
    with pm.Model() as model:
        log_q = pm.Normal("log_q", CENTRES, WIDTHS, initval=CENTRES)
        q = pt.exp(log_q)
        if op:
            found = as_op(populations)(q, YEARS, STEPS, STEP)
        else:

            def one(uv, *parts):
                def slope(uv):
                    return pt.stack([(parts[0] - parts[1] * uv[1]) * uv[0], (parts[3] * uv[0] - parts[2]) * uv[1]])

                return _runge_kutta(slope, uv)

            parts = [q[k] for k in range(4)]
            states = pytensor.scan(
                one, outputs_info=q[4:6], non_sequences=parts, n_steps=YEARS * STEPS, return_updates=False
            )
            found = pt.concatenate([q[None, 4:6], states[STEPS - 1 :: STEPS]])
        pm.Normal("y", pt.log(found), q[6], observed=logs)
    return nutpie.compile_pymc_model(model)


def _runge_kutta(slope, uv):
    k1 = slope(uv)
    k2 = slope(uv + 0.5 * STEP * k1)
    k3 = slope(uv + 0.5 * STEP * k2)
    k4 = slope(uv + STEP * k3)
    return uv + STEP / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def hunting_of_numpyro(logs):
    log_q = numpyro.sample("log_q", dist.Normal(jnp.asarray(CENTRES), jnp.asarray(WIDTHS)).to_event(1))
    q = jnp.exp(log_q)

    def slope(uv):
        return jnp.stack([(q[0] - q[1] * uv[1]) * uv[0], (q[3] * uv[0] - q[2]) * uv[1]])

    def one(uv, _):
        after = _runge_kutta(slope, uv)
        return after, after

    _, states = jax.lax.scan(one, q[4:6], None, length=YEARS * STEPS)
    found = jnp.concatenate([q[None, 4:6], states[STEPS - 1 :: STEPS]])
    numpyro.sample("y", dist.Normal(jnp.log(found), q[6]), obs=logs)


# -- sampling --------------------------------------------------------------------------------------------------------


def _seconds(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def _fastest(call):
    runs = [_seconds(call)]
    while len(runs) < 3 and sum(seconds for seconds, _ in runs) < 10.0:
        runs.append(_seconds(call))
    return min(runs, key=lambda pair: pair[0])


def by_nutpie(name, made):
    compiling, compiled = _seconds(made)

    def sample():
        return nutpie.sample(compiled, draws=DRAWS, tune=TUNE, chains=CHAINS, cores=CORES, seed=1, progress_bar=False)

    seconds, trace = _fastest(sample)
    _print(name, compiling, seconds, {n: trace.posterior[n].values for n in trace.posterior.data_vars})


def by_numpyro(name, model, *args, init=None):
    options = {"num_warmup": TUNE, "num_samples": DRAWS, "num_chains": CHAINS, "progress_bar": False}
    kernel = numpyro.infer.NUTS(model, init_strategy=init or numpyro.infer.init_to_median())
    sampler = numpyro.infer.MCMC(kernel, chain_method="vectorized", **options)
    first, _ = _seconds(lambda: sampler.run(jax.random.PRNGKey(0), *args))
    seconds, _ = _fastest(lambda: sampler.run(jax.random.PRNGKey(1), *args))
    _print(name, max(0.0, first - seconds), seconds, {n: np.asarray(v) for n, v in sampler.get_samples(True).items()})


def _print(name, compiling, seconds, draws):
    effective = {n: np.min(arviz.ess(arviz.from_dict({"posterior": {n: v}}))[n].values) for n, v in draws.items()}
    least = min(effective.values())
    means = ", ".join(f"{n} {np.round(v.mean(axis=(0, 1)), 2)}" for n, v in draws.items() if n in ("mu", "log_q"))
    print(
        f"{name:34} compiled in {compiling:5.1f} s, sampled in {seconds:6.2f} s, "
        f"{least:5.0f} effective, {least / seconds:6.0f} per second; {means}",
        flush=True,
    )


def main() -> None:
    numpyro.set_host_device_count(CORES)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    black_box()
    by_nutpie("schools, srcdiff and nutpie", schools_of_srcdiff)
    by_nutpie("schools, PyMC and nutpie", schools_of_pymc)
    by_numpyro("schools, NumPyro", schools_of_numpyro)
    logs = counted()
    by_nutpie("hunting, srcdiff and nutpie", lambda: hunting_of_srcdiff(logs))
    by_nutpie("hunting, as_op, PyMC and nutpie", lambda: hunting_of_pymc(logs, op=True))
    by_nutpie("hunting, PyMC and nutpie", lambda: hunting_of_pymc(logs, op=False))
    by_numpyro("hunting, NumPyro", hunting_of_numpyro, logs)


if __name__ == "__main__":
    main()
