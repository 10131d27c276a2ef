"""nutpie, and other samplers that call an address, sample log densities that srcdiff differentiates."""

from dataclasses import dataclass

import numpy as np
import pytest

import srcdiff

nutpie = pytest.importorskip("nutpie")

from srcdiff.bridges.nutpie import model  # noqa: E402  nutpie is there

MEASURED = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
START = {"mu": 0.0, "log_tau": 0.0, "eta": np.zeros(8)}


def eight_schools(p, measured, errors):
    tau = np.exp(p["log_tau"])
    total = -0.5 * (p["mu"] / 5.0) ** 2 + p["log_tau"] - np.log(1.0 + (tau / 5.0) ** 2)
    for k in range(len(measured)):
        total -= 0.5 * p["eta"][k] ** 2
        total -= 0.5 * ((measured[k] - p["mu"] - tau * p["eta"][k]) / errors[k]) ** 2
    return total


def effects(p, measured, errors):
    return {"tau": np.exp(p["log_tau"]), "theta": p["mu"] + np.exp(p["log_tau"]) * p["eta"]}


def sampled(made, **further):
    options = {"draws": 500, "tune": 300, "chains": 2, "cores": 2, "seed": 1, "progress_bar": False}
    return nutpie.sample(made, **{**options, **further})


def test_the_posterior_of_eight_schools():
    made = model(
        eight_schools,
        START,
        MEASURED,
        ERRORS,
        expand=effects,
        dims={"theta": ["school"]},
        coords={"school": [*"ABCDEFGH"]},
    )
    trace = sampled(made, draws=1500)

    assert (10, 8) == (made.n_dim, made.shapes["theta"][0])
    assert ("chain", "draw", "school") == trace.posterior["theta"].dims
    np.testing.assert_allclose(float(trace.posterior["mu"].mean()), 4.4, atol=0.7)  # a long run has 4.40
    np.testing.assert_allclose(float(trace.posterior["tau"].mean()), 3.6, atol=0.7)  # and 3.60
    np.testing.assert_allclose(trace.posterior["tau"], np.exp(trace.posterior["log_tau"]))


@dataclass
class Normal:
    mean: float
    log_scale: float


def test_variables_have_the_names_of_keys_and_attributes():
    def density(p, scale):
        z = (p["x"][0][0] - p["normal"].mean) * np.exp(-p["normal"].log_scale)
        return -0.5 * z**2 - p["normal"].log_scale - np.sum(p["normal"].mean ** 2) - 0.5 * p["normal"].log_scale ** 2

    made = model(density, {"x": [np.zeros(1)], "normal": Normal(0.5, 0.1)}, 1.0)
    assert {"x.0": (1,), "normal.mean": (), "normal.log_scale": ()} == made.shapes

    two = model(lambda a, b: -0.5 * np.sum(a**2) - 0.5 * b**2, np.zeros((2, 2)), 1.0, wrt=(0, 1))
    assert {"a": (2, 2), "b": ()} == two.shapes
    assert sampled(two, draws=10, tune=20).posterior["a"].shape == (2, 10, 2, 2)


def test_exceptions_and_nan_are_divergences_and_draws_stay_where_the_density_is_finite():
    def half(x):
        if x[0] > 1.0:
            raise ValueError("outside")
        return -0.5 * np.sum(x * x) + np.sqrt(1.0 - x[1]) * 0.0

    trace = sampled(model(half, np.zeros(2)))
    assert trace.posterior["x"].values.max() <= 1.0
    assert int(trace.sample_stats["diverging"].sum()) > 0


def test_bad_models_are_refused_when_they_are_made():
    def nowhere(x):
        return np.log(x * 0.0) - x * x

    with pytest.raises(ValueError, match=r"is -inf, in `.*nowhere`, .*test_nutpie_bridge.py:"):
        model(nowhere, 1.0)

    def raises(x):
        if x > 0.0:
            raise KeyError("of the user")
        return x

    with pytest.raises(KeyError, match="of the user") as caught:
        model(raises, 1.0)
    assert "called by nutpie" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="have no parameters"):
        model(lambda n: 1.0 * n[0], np.array([1]))
    with pytest.raises(ValueError, match="'x', which is a parameter"):
        model(lambda x: -x * x, 1.0, expand=lambda x: {"x": x})
    with pytest.raises(TypeError, match="must return a dictionary"):
        model(lambda x: -x * x, 1.0, expand=lambda x: x)
    with pytest.raises(ValueError, match="`dims` has y, but the variables are x"):
        model(lambda x: -x * x, 1.0, dims={"y": ["z"]})


def test_what_expand_cannot_compute_is_nan_with_a_warning():
    calls = []

    def sometimes(x):
        calls.append(x)
        if len(calls) == 30:
            raise KeyError("oh")
        return {"twice": 2.0 * x}

    with pytest.warns(RuntimeWarning, match="KeyError"):
        trace = sampled(model(lambda x: -0.5 * x * x, 0.1, expand=sometimes), draws=100, chains=1, cores=1, tune=10)
    stored = [trace.posterior["twice"], trace.warmup_posterior["twice"]]
    assert sum(int(np.isnan(values).sum()) for values in stored) == 1


def test_walnutpie_takes_the_c_function():
    walnutpie = pytest.importorskip("walnutpie")

    def density(x, middle):
        return -0.5 * np.sum((x - middle) ** 2)

    c = srcdiff.grad(density).cfunc(np.zeros(3), np.arange(3.0))
    same = {"min_warmup_iter": 500, "max_warmup_iter": 500, "min_sampling_iter": 1000, "max_sampling_iter": 1000}
    chains = walnutpie.walnuts_pyfunc(c, num_params=c.n, seed=3, **same)
    np.testing.assert_allclose(np.concatenate(chains).mean(axis=0), np.arange(3.0), atol=0.15)


def test_emcee_takes_the_value_of_the_c_function():
    emcee = pytest.importorskip("emcee")
    c = srcdiff.grad(lambda x: -0.5 * np.sum((x - 1.0) ** 2)).cfunc(np.zeros(2))
    start = np.random.default_rng(0).normal(size=(16, 2))
    sampler = emcee.EnsembleSampler(16, 2, lambda x: c(x)[0])
    sampler.random_state = np.random.RandomState(1).get_state()
    sampler.run_mcmc(start, 800)
    np.testing.assert_allclose(sampler.get_chain(discard=200, flat=True).mean(axis=0), [1.0, 1.0], atol=0.2)
