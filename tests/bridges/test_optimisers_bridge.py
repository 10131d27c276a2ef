"""Optimisers other than SciPy's find known solutions, with structured parameters and derivatives by srcdiff."""

from dataclasses import dataclass

import numpy as np
import pytest

T = np.linspace(0.0, 3.0, 30)
MEASURED = 0.5 + 2.0 * np.exp(-1.5 * T)


@dataclass
class Decay:
    rate: float
    levels: np.ndarray


def start():
    return {"decay": Decay(1.0, np.array([0.0, 1.0])), "unit": "s"}


def residuals(p, t, measured):
    return p["decay"].levels[0] + p["decay"].levels[1] * np.exp(-p["decay"].rate * t) - measured


def misfit(p, t, measured):
    total = 0.0
    for k in range(len(t)):
        total += (p["decay"].levels[0] + p["decay"].levels[1] * np.exp(-p["decay"].rate * t[k]) - measured[k]) ** 2
    return total


def raises(p):
    if p["x"] < 0.5:
        raise KeyError("of the user")
    return p["x"] ** 2


def assert_found(params):
    assert (Decay, "s") == (type(params["decay"]), params["unit"])
    np.testing.assert_allclose(params["decay"].rate, 1.5, rtol=1e-4)
    np.testing.assert_allclose(params["decay"].levels, [0.5, 2.0], rtol=1e-4)


# Hock and Schittkowski's problem 71: a known point and value


def hs71(p):
    return p["a"] * p["d"] * (p["a"] + p["bc"][0] + p["bc"][1]) + p["bc"][1]


def product(p):
    return p["a"] * p["bc"][0] * p["bc"][1] * p["d"]


def squares(p):
    return p["a"] ** 2 + np.sum(p["bc"] ** 2) + p["d"] ** 2


HS71 = {"a": 1.0, "bc": np.array([5.0, 5.0]), "d": 1.0}
BOUNDS = {"a": 1.0, "bc": 1.0, "d": 1.0}, {"a": 5.0, "bc": 5.0, "d": 5.0}
SOLUTION = [1.0, 4.74299963, 3.82114998, 1.37940829]


class TestNLopt:
    @pytest.fixture(autouse=True)
    def _bridge(self):
        library = pytest.importorskip("nlopt")
        from srcdiff.bridges import nlopt

        self.bridge, self.invalid = nlopt, library.invalid_argument

    @pytest.mark.parametrize("algorithm", ["LD_LBFGS", "LD_TNEWTON", "LN_NELDERMEAD"])
    def test_algorithms_with_and_without_gradients(self, algorithm):
        found = self.bridge.minimize(misfit, start(), (T, MEASURED), algorithm)
        assert_found(found.params)
        assert found.success

    def test_a_problem_with_constraints(self):
        found = self.bridge.minimize(
            hs71,
            HS71,
            algorithm="LD_SLSQP",
            lower=BOUNDS[0],
            upper=BOUNDS[1],
            equal=[lambda p: squares(p) - 40.0],
            below=[lambda p: 25.0 - product(p)],
        )
        np.testing.assert_allclose(found.x, SOLUTION, rtol=1e-5)

    def test_exceptions_of_constraints_name_the_constraint(self):
        def above(p):
            if p["x"] > 0.5:
                raise RuntimeError("of the constraint")
            return p["x"] - 1.0

        with pytest.raises(RuntimeError, match="of the constraint") as caught:
            self.bridge.minimize(
                lambda p: (p["x"] - 3.0) ** 2, {"x": 0.0}, algorithm="LD_SLSQP", below=[above], backend="python"
            )
        assert 1 == len(caught.value.__notes__)
        assert ".above`" in caught.value.__notes__[0]

    def test_nan_is_no_success(self):
        assert not self.bridge.minimize(lambda p: np.log(p["x"]), {"x": -1.0}, backend="python").success

    def test_exceptions_and_bad_arguments(self):
        with pytest.raises(KeyError, match="of the user"):
            self.bridge.minimize(raises, {"x": 2.0})
        with pytest.raises(self.invalid) as caught:
            self.bridge.minimize(lambda p: p["x"] ** 2, {"x": 2.0}, lower={"x": 3.0}, backend="python")
        assert caught.value.__notes__[0] == "bounds 0 fail 3 <= 2 <= inf"
        assert "called by NLopt" in caught.value.__notes__[1]
        with pytest.raises(ValueError, match="no algorithm 'BFGS'"):
            self.bridge.minimize(misfit, start(), (T, MEASURED), "BFGS")
        with pytest.raises(TypeError, match="no setting 'tol'"):
            self.bridge.minimize(misfit, start(), (T, MEASURED), tol=1.0)
        with pytest.raises(ValueError, match="must be None, or have the shape"):
            self.bridge.minimize(misfit, start(), (T, MEASURED), lower={"decay": Decay(0.0, np.zeros(3))})


class TestMinuit:
    @pytest.fixture(autouse=True)
    def _bridge(self):
        pytest.importorskip("iminuit")
        from srcdiff.bridges import iminuit

        self.bridge = iminuit

    def test_migrad_hesse_and_minos(self):
        fit = self.bridge.minuit(misfit, start(), (T, MEASURED), lower={"decay": Decay(0.1, None)})
        fit.tol = 1e-5
        fit.migrad()
        fit.hesse()
        assert fit.valid
        assert ("decay.rate", "decay.levels.0", "decay.levels.1") == fit.parameters
        assert_found(fit.fitted)
        assert fit.ngrad > 0
        assert (0.1, np.inf) == fit.limits["decay.rate"]
        fit.minos("decay.rate")
        assert fit.merrors["decay.rate"].is_valid
        jacobian = np.stack([np.exp(-1.5 * T) * -2.0 * T, np.ones(30), np.exp(-1.5 * T)], axis=1)
        np.testing.assert_allclose(fit.covariance, np.linalg.inv(jacobian.T @ jacobian), rtol=1e-3)

    def test_elements_of_matrices_have_their_index(self):
        fit = self.bridge.minuit(lambda w: np.sum((w - 1.0) ** 2), np.zeros((1, 2)))
        assert ("w[0, 0]", "w[0, 1]") == tuple(name.replace("w.0", "w[0, 0]") for name in fit.parameters)

    def test_exceptions_reach_the_caller(self):
        with pytest.raises(KeyError, match="of the user") as caught:
            self.bridge.minuit(raises, {"x": 2.0}).migrad()
        assert any("`raises`" in note and "called by iminuit" in note for note in caught.value.__notes__)


class TestLmfit:
    @pytest.fixture(autouse=True)
    def _bridge(self):
        pytest.importorskip("lmfit")
        from srcdiff.bridges import lmfit

        self.bridge = lmfit

    @pytest.mark.parametrize("method", ["leastsq", "least_squares", "bfgs", "lbfgsb", "nelder"])
    def test_methods(self, method):
        lower = {"decay": Decay(0.1, None)} if method in ("leastsq", "least_squares") else None
        found = self.bridge.minimize(residuals, start(), (T, MEASURED), method, lower=lower)
        assert_found(found.fitted)
        assert ["decay_rate", "decay_levels_0", "decay_levels_1"] == [*found.params]
        assert found.nfev < 600

    @pytest.mark.parametrize("method", ["newton", "L-BFGS-B", "BFGS"])
    def test_gradients_reach_methods_by_all_their_names(self, method):
        found = self.bridge.minimize(residuals, start(), (T, MEASURED), method, backend="python")
        assert_found(found.fitted)
        assert found.njev > 0
        assert found.nfev < 60

    def test_another_function_than_the_sum_of_squares_has_no_gradient_of_that_sum(self):
        def line(p, t, measured):
            return p["a"] + p["b"] * t - measured

        t = np.linspace(0.0, 1.0, 11)
        measured = 1.0 + 2.0 * t
        measured[3] = 50.0  # the sum of absolute values ignores it
        absolute = {"reduce_fcn": lambda r: np.sum(np.sqrt(r * r + 1e-4))}
        found = self.bridge.minimize(line, {"a": 0.0, "b": 0.0}, (t, measured), "bfgs", **absolute, backend="python")
        np.testing.assert_allclose([found.fitted["a"], found.fitted["b"]], [1.0, 2.0], atol=0.01)

    def test_nan_gets_the_exception_of_lmfit_with_the_line(self):
        with pytest.raises(ValueError, match="NaN values detected") as caught:
            self.bridge.minimize(lambda p: np.array([np.log(p["x"])]), {"x": -1.0}, backend="python")
        assert "called by lmfit" in caught.value.__notes__[0]

    def test_fixed_parameters_and_errors(self):
        found = self.bridge.minimize(
            residuals, start(), (T, MEASURED + 0.01 * np.sin(50 * T)), fixed=["decay_levels_0"]
        )
        assert (0.0, ["decay_rate", "decay_levels_1"]) == (found.params["decay_levels_0"].value, found.var_names)
        assert found.params["decay_rate"].stderr > 0.0

    def test_exceptions_and_bad_arguments(self):
        with pytest.raises(KeyError, match="of the user"):
            self.bridge.minimize(lambda p: np.array([raises(p)]), {"x": 2.0})
        with pytest.raises(ValueError, match="there is no parameter rate: there are decay_rate"):
            self.bridge.minimize(residuals, start(), (T, MEASURED), fixed=["rate"])
        with pytest.raises(TypeError, match="computed by srcdiff"):
            self.bridge.minimize(residuals, start(), (T, MEASURED), Dfun=residuals)


class TestOpenMDAO:
    @pytest.fixture(autouse=True)
    def _bridge(self):
        pytest.importorskip("openmdao")
        from openmdao import api

        from srcdiff.bridges import openmdao

        self.bridge, self.om = openmdao, api

    def problem(self, component):
        problem = self.om.Problem(reports=False)
        problem.model.add_subsystem("part", component, promotes=["*"])
        return problem

    def test_partials_are_those_of_differences(self):
        def wing(p, speed, count):
            lift = np.zeros(count)
            for k in range(count):
                lift[k] = p["chord"][k] * speed**2 * np.sin(p["twist"])
            return {"lift": lift, "drag": np.sum(lift**2) + speed}

        made = self.bridge.component(wing, {"chord": np.array([1.0, 2.0]), "twist": 0.1}, 3.0, 2)
        problem = self.problem(made)
        problem.setup(force_alloc_complex=False)
        problem.run_model()
        assert ["p:chord", "p:twist", "speed"] == [*made.places]
        np.testing.assert_allclose(problem.get_val("lift"), np.array([9.0, 18.0]) * np.sin(0.1))
        checked = problem.check_partials(out_stream=None, method="fd", form="central")["part"]
        for pair, found in checked.items():
            np.testing.assert_allclose(found["J_fwd"], found["J_fd"], rtol=1e-5, atol=1e-5, err_msg=str(pair))

    def test_a_function_called_f(self):
        def f(x, y):
            return {"product": x * y}

        problem = self.problem(self.bridge.component(f, 3.0, 2.0, backend="python"))
        problem.setup()
        problem.run_model()
        assert problem.compute_totals(["product"], ["x"])["product", "x"] == 2.0

    def test_optimisation_by_a_driver(self):
        problem = self.problem(
            self.bridge.component(lambda x, y: (x - 1.0) ** 2 + x * y + y**2, 3.0, -4.0, outputs=["f"])
        )
        problem.driver = self.om.ScipyOptimizeDriver(optimizer="SLSQP", disp=False)
        problem.model.add_design_var("x")
        problem.model.add_design_var("y")
        problem.model.add_objective("f")
        problem.setup()
        problem.run_driver()
        np.testing.assert_allclose([problem.get_val("x")[0], problem.get_val("y")[0]], [4 / 3, -2 / 3], rtol=1e-4)

    def test_exceptions_and_bad_arguments(self):
        problem = self.problem(self.bridge.component(raises, {"x": 2.0}))
        problem.setup()
        problem.set_val("p:x", 0.1)
        with pytest.raises(KeyError, match="of the user") as caught:
            problem.run_model()
        assert any("called by OpenMDAO" in note for note in caught.value.__notes__)
        with pytest.raises(ValueError, match="returns 1 results, but `outputs` has 2 names"):
            self.bridge.component(raises, {"x": 2.0}, outputs=["a", "b"])
        with pytest.raises(ValueError, match="`x` is an input and an output"):
            self.bridge.component(lambda x: {"x": x * x}, 2.0)
