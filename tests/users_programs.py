"""Programs as people write them: hydrology, robotics, astrodynamics, finance and others, with classes, records,
containers, decorators, generators, exceptions and random numbers.

Each is a function of a float or a vector first, whose derivative is asked for, and of data.
"""

# Written as users write: `zip` without `strict`, loops that append, dictionaries that are filled.
# ruff: noqa: B905, NPY002

from __future__ import annotations

import contextlib
import enum
import functools
import itertools
import logging
import math
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numba import float64, guvectorize, int64, njit, vectorize
from numba.experimental import jitclass

PROGRAMS: list[tuple[Callable[..., float], tuple[Any, ...]]] = []
logger = logging.getLogger(__name__)


def at(*arguments: Any) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Put a program into the corpus, with the arguments to run it at."""

    def add(function: Callable[..., float]) -> Callable[..., float]:
        PROGRAMS.append((function, arguments))
        return function

    return add


RAIN = np.array([0.0, 12.0, 5.0, 0.0, 3.0, 20.0, 1.0, 0.0])
FLOW = np.array([1.0, 2.5, 3.1, 2.2, 2.0, 4.5, 3.9, 2.7])


# ---------------------------------------------------------------------------------------------------------- hydrology


class Reservoir:
    """A linear store with an outlet."""

    def __init__(self, k, level=0.0):
        self.k = k
        self.level = level

    def step(self, inflow):
        outflow = self.level / self.k
        self.level += inflow - outflow
        return outflow


@at(np.array([2.0, 5.0]), RAIN, FLOW)
def two_reservoirs(k, rain, observed):
    fast, slow = Reservoir(k[0]), Reservoir(k[1], 3.0)
    error = 0.0
    for r, q in zip(rain, observed):
        simulated = fast.step(0.7 * r) + slow.step(0.3 * r)
        error += (simulated - q) ** 2
    return error / len(observed)


class Model(ABC):
    @abstractmethod
    def flow(self, state, rain):
        """The flow out of a state."""

    def simulate(self, rain):
        state, flows = 1.0, []
        for r in rain:
            q = self.flow(state, r)
            state = max(state + r - q, 0.0)
            flows.append(q)
        return np.array(flows)


class PowerLaw(Model):
    def __init__(self, a, b):
        self.a, self.b = a, b

    def flow(self, state, rain):
        return self.a * (state + 0.1) ** self.b


@at(np.array([0.2, 0.9]), RAIN, FLOW)
def nash_sutcliffe(p, rain, observed):
    simulated = PowerLaw(p[0], p[1]).simulate(rain)
    return 1.0 - np.sum((observed - simulated) ** 2) / np.sum((observed - np.mean(observed)) ** 2)


@at(np.array([10.0, 0.5, 1.2]), RAIN)
def soil_moisture_accounting(p, rain):
    params = {"capacity": p[0], "loss": p[1], "shape": p[2]}
    state = {"soil": 4.0, "runoff": 0.0}
    for r in rain:
        wetness = state["soil"] / params["capacity"]
        excess = r * wetness ** params["shape"] if wetness < 1.0 else r
        state["soil"] += r - excess - params["loss"] * wetness
        state["runoff"] += excess
    return state["runoff"]


def kirpich(length, slope):
    return 0.0195 * length**0.77 / slope**0.385


@at(np.array([500.0, 0.02]))
def routed_through_a_network(p):
    """Subcatchments that drain into each other, by their numbers."""
    downstream = {1: 3, 2: 3, 3: 4, 4: 0}
    flow = {}
    for k in downstream:
        flow[k] = 0.1 * k * kirpich(p[0], p[1] * k)
    for k in (1, 2, 3):
        flow[downstream[k]] += 0.9 * flow[k]
    return flow[4]


@at(0.3, np.array([3, 1, 3, 2, 1, 3]), np.array([1.0, 2.0, 0.5, 1.5, 3.0, 2.5]))
def load_by_basin(decay, basin, load):
    totals = {}
    for b, amount in zip(basin, load):
        totals[b] = totals.get(b, 0.0) * math.exp(-decay) + amount
    return sum(v * v for v in totals.values())


# ----------------------------------------------------------------------------------------------------------- robotics


@dataclass
class Link:
    length: float
    mass: float
    inertia: float = field(init=False)

    def __post_init__(self):
        self.inertia = self.mass * self.length**2 / 12.0


@at(np.array([0.3, 0.4, -0.2]))
def arm_reaches(q):
    links = [Link(1.0, 2.0), Link(0.8, 1.5), Link(0.3, 0.2)]
    x = y = angle = 0.0
    for link, qi in zip(links, q):
        angle += qi
        x += link.length * np.cos(angle)
        y += link.length * np.sin(angle)
    return (x - 1.2) ** 2 + (y - 0.5) ** 2 + sum(link.inertia * qi**2 for link, qi in zip(links, q))


class Quaternion:
    __slots__ = ("w", "x", "y", "z")

    def __init__(self, w, x, y, z):
        self.w, self.x, self.y, self.z = w, x, y, z

    def __mul__(self, o):
        return Quaternion(
            self.w * o.w - self.x * o.x - self.y * o.y - self.z * o.z,
            self.w * o.x + self.x * o.w + self.y * o.z - self.z * o.y,
            self.w * o.y - self.x * o.z + self.y * o.w + self.z * o.x,
            self.w * o.z + self.x * o.y - self.y * o.x + self.z * o.w,
        )

    @property
    def conjugate(self):
        return Quaternion(self.w, -self.x, -self.y, -self.z)

    @classmethod
    def about_z(cls, angle):
        return cls(np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2))

    def rotate(self, v):
        r = self * Quaternion(0.0, *v) * self.conjugate
        return np.array([r.x, r.y, r.z])


@at(0.7, np.array([1.0, 2.0, 3.0]))
def rotated_by_quaternions(angle, v):
    turned = (Quaternion.about_z(angle) * Quaternion.about_z(0.2)).rotate(v)
    return turned @ np.array([1.0, -2.0, 0.5])


class Pid:
    def __init__(self, kp, ki, kd):
        self.gains = (kp, ki, kd)
        self.reset()

    def reset(self):
        self.total = 0.0
        self.last = None

    def __call__(self, error, dt):
        self.total += error * dt
        slope = 0.0 if self.last is None else (error - self.last) / dt
        self.last = error
        kp, ki, kd = self.gains
        return kp * error + ki * self.total + kd * slope


@at(np.array([2.0, 0.5, 0.1]), 12)
def tuned_controller(gains, steps):
    controller, x, v, cost = Pid(*gains), 0.0, 0.0, 0.0
    for _ in range(steps):
        force = controller(1.0 - x, 0.1)
        v += 0.1 * (force - 0.5 * v)
        x += 0.1 * v
        cost += (1.0 - x) ** 2 + 0.01 * force**2
    return cost


class Pose(NamedTuple):
    x: float
    y: float
    heading: float

    def __add__(self, move):
        distance, turn = move
        heading = self.heading + turn
        return Pose(self.x + distance * np.cos(heading), self.y + distance * np.sin(heading), heading)

    def distance(self, other):
        return np.hypot(self.x - other.x, self.y - other.y)


@at(np.array([0.1, -0.2, 0.3]), np.array([1.0, 0.5, 2.0]))
def dead_reckoning(turns, distances):
    pose = Pose(0.0, 0.0, 0.0)
    for move in zip(distances, turns):
        pose = pose + move
    return pose.distance(Pose(3.0, 0.2, 0.0)) + pose.heading**2


@at(0.4, np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]))
def nearest_landmark(x, landmarks):
    best, where = float("inf"), None
    for k, (lx, ly) in enumerate(landmarks):
        d = (lx - x) ** 2 + (ly - 0.3) ** 2
        if d < best:
            best, where = d, k
    return best * (1.0 if where is None else where + 2.0)


class Joint:
    def __init__(self, angle):
        self.angle = angle

    def turn(self, by):
        self.angle += by
        return self


@at(0.3, 6)
def alternating_joints(step, n):
    left, right = Joint(0.1), Joint(0.2)
    for k in range(n):
        active = left if k % 2 == 0 else right
        active.turn(step * (k + 1)).turn(-0.01)
    return np.sin(left.angle) * np.cos(right.angle)


# ------------------------------------------------------------------------------------------------------- astrodynamics


@dataclass(frozen=True)
class Orbit:
    a: float
    e: float

    def anomaly(self, mean):
        """Kepler's equation by Newton's method."""
        big = mean
        while True:
            change = (big - self.e * math.sin(big) - mean) / (1.0 - self.e * math.cos(big))
            big -= change
            if abs(change) < 1e-13:
                return big

    def radius(self, mean):
        return self.a * (1.0 - self.e * math.cos(self.anomaly(mean)))


@at(np.array([1.3, 0.2]))
def kepler_by_a_class(p):
    orbit = Orbit(p[0], p[1])
    wider = replace(orbit, a=2.0 * orbit.a)
    return sum(orbit.radius(m) for m in (0.3, 1.2, 2.5)) + wider.radius(1.0)


class Body:
    def __init__(self, mass, position, velocity):
        self.mass = mass
        self.position = np.array(position)
        self.velocity = np.array(velocity)

    def pull(self, other):
        d = other.position - self.position
        return other.mass * d / np.sum(d * d) ** 1.5


class System:
    def __init__(self, bodies):
        self.bodies = bodies

    def step(self, dt):
        pulls = [sum(b.pull(o) for o in self.bodies if o is not b) for b in self.bodies]
        for body, pull in zip(self.bodies, pulls):
            body.velocity = body.velocity + dt * pull
            body.position = body.position + dt * body.velocity

    @property
    def energy(self):
        kinetic = sum(0.5 * b.mass * np.sum(b.velocity**2) for b in self.bodies)
        for a, b in itertools.combinations(self.bodies, 2):
            kinetic -= a.mass * b.mass / np.sqrt(np.sum((a.position - b.position) ** 2))
        return kinetic


@at(np.array([0.9, 0.1]), 5)
def energy_of_two_bodies(v, n):
    system = System([Body(1.0, [0.0, 0.0], [0.0, -0.1]), Body(0.2, [1.0, 0.0], [v[1], v[0]])])
    for _ in range(n):
        system.step(0.05)
    return system.energy + system.bodies[1].position[0]


BODY = np.dtype([("mass", "f8"), ("x", "f8", (2,)), ("v", "f8", (2,))])


@at(np.array([0.2, 0.9]), 4)
def bodies_as_records(v, n):
    bodies = np.zeros(2, BODY)
    bodies["mass"] = [1.0, 0.1]
    bodies[1]["x"][0] = 1.0
    bodies[1]["v"] = v
    for _ in range(n):
        for body in bodies:
            for other in bodies:
                d = other["x"] - body["x"]
                r2 = np.sum(d * d)
                if r2 > 0.0:
                    body["v"] += 0.05 * other["mass"] * d / r2**1.5
        bodies["x"] += 0.05 * bodies["v"]
    return np.sum(bodies["x"] ** 2) + bodies[0]["v"][0]


def rk4(f: Callable[..., Any], y: Any, dt: float) -> Any:
    k1 = f(y)
    k2 = f(y + 0.5 * dt * k1)
    k3 = f(y + 0.5 * dt * k2)
    return y + dt / 6.0 * (k1 + 2 * k2 + 2 * k3 + f(y + dt * k3))


@at(np.array([1.0, 0.0, 0.1, 0.9]), 6)
def propagated_by_a_closure(state, n):
    mu = 1.1

    def motion(s):
        r3 = (s[0] ** 2 + s[1] ** 2) ** 1.5
        return np.array([s[2], s[3], -mu * s[0] / r3, -mu * s[1] / r3])

    for _ in range(n):
        state = rk4(motion, state, 0.1)
    return state[0] * state[3] - state[1] * state[2] + state[0]


@at(0.05, 40)
def time_of_arrival(thrust, limit):
    height = speed = time = 0.0
    for _ in range(limit):
        speed += 0.1 * (thrust + 0.2)
        height += 0.1 * speed
        time += 0.1
        if height > 0.5:
            break
    else:
        raise ValueError("it does not arrive")
    return time - (height - 0.5) / speed


# ------------------------------------------------------------------------------------------------------------- finance


class Kind(enum.Enum):
    CALL = 1
    PUT = -1


def normal_cdf(x):
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


@dataclass(frozen=True)
class Option:
    strike: float
    expiry: float
    kind: Kind = Kind.CALL

    def price(self, spot, vol, rate=0.01):
        root = vol * math.sqrt(self.expiry)
        d1 = (math.log(spot / self.strike) + (rate + 0.5 * vol**2) * self.expiry) / root
        w = self.kind.value
        return w * (
            spot * normal_cdf(w * d1) - self.strike * math.exp(-rate * self.expiry) * normal_cdf(w * (d1 - root))
        )


@at(np.array([100.0, 0.2]))
def portfolio_of_options(p):
    book = [(2.0, Option(95.0, 0.5)), (-1.0, Option(110.0, 1.0)), (1.5, Option(90.0, 0.25, Kind.PUT))]
    return sum(quantity * option.price(p[0], vol=p[1]) for quantity, option in book)


@at(np.array([0.02, 0.025, 0.03]), 2.4)
def curve_from_a_dictionary(rates, t):
    curve = {k + 1: r for k, r in enumerate(rates)}
    low = int(t)
    rate = curve[low] + (t - low) * (curve[low + 1] - curve[low])
    return math.exp(-rate * t)


@functools.wraps(normal_cdf)
def weight(x):
    return normal_cdf(x) + 0.5


@at(0.3, np.array([95.0, 100.0, 105.0]), np.array([8.0, 5.0, 2.6]))
def implied_volatility_error(vol, strikes, quotes):
    return sum(weight(0.01 * k) * (Option(k, 1.0).price(100.0, vol) - q) ** 2 for k, q in zip(strikes, quotes))


def cashflows(coupon: float, years: int) -> Iterator[tuple[int, float]]:
    for year in range(1, years):
        yield year, coupon
    yield years, 100.0 + coupon


@at(0.04, 5)
def bond_from_a_generator(rate, years):
    return sum(amount / (1.0 + rate) ** year for year, amount in cashflows(3.0, years))


@at(0.1, 98.0)
def yield_by_newton(guess, price):
    y = guess
    for _ in range(20):
        value = sum(a / (1 + y) ** t for t, a in cashflows(3.0, 3))
        slope = sum(-t * a / (1 + y) ** (t + 1) for t, a in cashflows(3.0, 3))
        try:
            step = float(value - price) / float(slope)
        except ZeroDivisionError:
            break
        y -= 0.5 * step
        if abs(step) < 1e-3:
            break
    return y


class Account:
    rate = 0.03

    def __init__(self, balance):
        self._balance = balance

    @property
    def balance(self):
        return self._balance

    @balance.setter
    def balance(self, value):
        if value < 0.0:
            raise ValueError("overdrawn")
        self._balance = value

    def withdraw(self, amount):
        self.balance -= amount
        return amount


@at(50.0, np.array([10.0, 30.0, 20.0, 5.0]))
def withdrawals_that_may_fail(balance, wishes):
    account, paid = Account(balance), 0.0
    for wish in wishes:
        try:
            paid += account.withdraw(wish)
        except ValueError:
            paid += account.withdraw(0.5 * account.balance)
        account.balance *= 1.0 + Account.rate
    return paid + 2.0 * account.balance


@at(np.array([100.0, 0.2]), 16)
def simulated_price(p, n):
    rng = np.random.default_rng(7)
    z = rng.standard_normal(n)
    paths = p[0] * np.exp(-0.5 * p[1] ** 2 + p[1] * z)
    return np.mean(np.maximum(paths - 95.0, 0.0))


@at(np.array([0.1, 0.4]), 8)
def simulated_path(p, steps):
    rng, x, total = np.random.default_rng(3), 1.0, 0.0
    for _ in range(steps):
        x += p[0] * (1.5 - x) + p[1] * np.sqrt(x) * rng.normal(0.0, 0.1)
        total += x
    return total / steps


# --------------------------------------------------------------------------------------------- statistics and learning


class Normal:
    def __init__(self, loc, scale):
        self.loc, self.scale = loc, scale

    def log_density(self, x):
        return -0.5 * ((x - self.loc) / self.scale) ** 2 - np.log(self.scale)


class Mixture(Normal):
    def __init__(self, loc, scale, weight):
        super().__init__(loc, scale)
        self.weight = weight

    def log_density(self, x):
        return np.logaddexp(np.log(self.weight) + super().log_density(x), np.log(1 - self.weight) - 0.5 * x**2)


@at(np.array([0.3, 1.2, 0.4]), np.array([0.1, -0.5, 1.3]))
def likelihood_of_a_mixture(p, data):
    model = Mixture(*p)
    return sum(model.log_density(x) for x in data)


class Dense:
    def __init__(self, w, b, activation=np.tanh):
        self.w, self.b, self.activation = w, b, activation

    def __call__(self, x):
        return self.activation(self.w @ x + self.b)


class Network:
    def __init__(self, layers):
        self.layers = layers

    def __len__(self):
        return len(self.layers)

    def __getitem__(self, k):
        return self.layers[k]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@at(np.linspace(-0.5, 0.6, 9), np.array([0.3, 0.8]))
def network_of_objects(p, x):
    net = Network([Dense(p[:4].reshape(2, 2), p[4:6]), Dense(p[6:8].reshape(1, 2), p[8:], activation=lambda y: y)])
    return net(x)[0] ** 2 + len(net) * np.sum(net[0].w ** 2)


@at(np.array([0.5, -0.3]), np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.1]]), np.array([1, 0, 1]))
def logistic_with_keywords(w, x, y):
    def loss(w, *, penalty=0.0, link="logit", **extra):
        total = 0.0
        for row, label in zip(x, y):
            s = row @ w + extra["offset"]
            p = 1.0 / (1.0 + np.exp(-s)) if link == "logit" else s
            total -= np.log(p if label else 1.0 - p)
        return total + penalty * np.sum(w**2)

    return loss(w, penalty=0.1, offset=0.05)


@at(np.array([0.5, 1.5]), np.array([1.0, 3.0, 2.5, 4.0]))
def kalman_filter(noise, observations):
    state = SimpleNamespace(mean=0.0, variance=1.0)
    score = 0.0
    for z in observations:
        state.variance += noise[0]
        gain = state.variance / (state.variance + noise[1])
        innovation = z - state.mean
        score += innovation**2 / (state.variance + noise[1]) + np.log(state.variance + noise[1])
        state.mean += gain * innovation
        state.variance *= 1.0 - gain
    return score


@at(np.array([1.0, 0.5]), np.array([[0.0, 1.0], [1.0, 1.5], [2.0, 0.2]]))
def gaussian_process_with_try(p, points):
    n = len(points)
    k = np.empty((n, n))
    for i, j in np.ndindex(n, n):
        k[i, j] = p[0] * np.exp(-0.5 * np.sum((points[i] - points[j]) ** 2) / p[1])
    try:
        factor = np.linalg.cholesky(k + 1e-6 * np.eye(n))
    except np.linalg.LinAlgError:
        return 1e6 * p[0]
    return np.sum(np.log(np.diag(factor)))


@at(0.7, np.array([1.0, 2.0, 4.0, 8.0]))
def robust_mean_of_generators(scale, data):
    def huber(values):
        for v in values:
            a = abs(v) / scale
            yield 0.5 * a * a if a < 2.0 else 2.0 * a - 2.0

    return sum(huber(d - 3.0 for d in data)) + max(huber(data))


@at(np.array([0.2, 0.8, 0.5]), (2, 0, 1, 1))
def markov_chain_in_a_dictionary(p, sequence):
    moves = {(0, 1): p[0], (1, 1): p[1], (2, 0): p[2]}
    total = 0.0
    for before, after in itertools.pairwise(sequence):
        total += math.log(moves.get((before, after), 1e-3))
    return total


# ------------------------------------------------------------------------------------------- physics and engineering


class Grid:
    """A field with ghost cells, indexed from one."""

    def __init__(self, n, value):
        self.values = np.full(n + 2, value)

    def __getitem__(self, i):
        return self.values[i]

    def __setitem__(self, i, value):
        self.values[i] = value

    def __len__(self):
        return len(self.values) - 2

    def __iter__(self):
        for i in range(1, len(self) + 1):
            yield self.values[i]


@at(np.array([1.0, 0.2]), 5)
def heat_on_a_grid(p, n):
    old, new = Grid(n, 0.0), Grid(n, 0.0)
    old[0] = new[0] = p[0]
    for _ in range(3):
        for i in range(1, n + 1):
            new[i] = old[i] + p[1] * (old[i - 1] - 2 * old[i] + old[i + 1])
        old, new = new, old
    return sum(v * k for k, v in enumerate(old))


Material = namedtuple("Material", "young poisson")


@at(np.array([2.0, 0.3]), 0.01)
def plane_stress(p, strain):
    steel = Material(*p)
    factor = steel.young / (1.0 - steel.poisson**2)
    matrix = factor * np.array([[1.0, steel.poisson], [steel.poisson, 1.0]])
    softer = steel._replace(young=0.5 * steel.young)
    return 1e4 * np.array([strain, 0.0]) @ matrix @ np.array([strain, strain]) + softer.young


@at(np.array([1.0, 2.0, 0.5]), [(0, 1, 0), (1, 2, 1), (0, 2, 2)])
def truss_by_elements(stiffness, elements):
    k = np.zeros((3, 3))
    for a, b, e in elements:
        for i, j, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
            k[i, j] += sign * stiffness[e]
    u = np.linalg.solve(k[1:, 1:], np.array([0.3, 1.0]))
    return u @ u


class Spring:
    def __init__(self, stiffness, length):
        self.stiffness, self.length = stiffness, length

    def energy(self, x):
        return 0.5 * self.stiffness * (x - self.length) ** 2


class Damped(Spring):
    def energy(self, x):
        return super().energy(x) * (1.0 + 0.1 * np.tanh(x))


@at(np.array([1.0, 0.4, 2.0]))
def different_elements_of_a_list(x):
    parts = [Spring(1.0, 0.5), Damped(2.0, 0.3), Spring(0.5, 1.0)]
    total = 0.0
    for k, part in enumerate(parts):
        total += part.energy(x[k])
    return total + sum(isinstance(p, Damped) for p in parts) * x[0]


@contextlib.contextmanager
def scaled(values, factor):
    values *= factor
    yield values
    values /= factor


@at(np.array([0.3, 0.7]))
def inside_of_a_context(x):
    work = x.copy()
    with scaled(work, 3.0) as w:
        inside = np.sum(np.sin(w))
    return inside + np.sum(work**2)


class Timer:
    def __init__(self):
        self.calls = 0

    def __enter__(self):
        self.calls += 1
        return self

    def __exit__(self, *exception):
        self.calls += 10


@at(1.3)
def counted_by_a_context(x):
    timer = Timer()
    for _ in range(2):
        with timer as t:
            x = x * (1.0 + 0.1 * t.calls)
    return x * timer.calls


@at(np.array([0.1, 0.6]), "spherical")
def coordinates_by_match(angles, system):
    match system:
        case "polar":
            return np.cos(angles[0])
        case "spherical" | "geographic":
            return np.sin(angles[0]) * np.cos(angles[1])
        case _:
            raise ValueError(system)


@at(np.array([1.5, 0.7]))
def logged_and_checked(p):
    logger.debug("parameters %s", p)
    assert p[0] > 0.0, "the first must be positive"
    return math.log(p[0]) * p[1]


def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return 2.0 * function(*args, **kwargs)

    return wrapper


@traced
def drag(v, *, area=1.0):
    return 0.5 * area * v * abs(v)


@at(1.4)
def through_a_decorator(v):
    return drag(v, area=0.3) + drag(-v)


@at(0.8, 5)
def recursion_with_memory(x, n):
    known = {0: 1.0, 1: x}
    for k in range(2, n + 1):
        known[k] = ((2 * k - 1) * x * known[k - 1] - (k - 1) * known[k - 2]) / k
    return known[n]


@at(0.4, 3)
def recursive_function(x, depth):
    def tree(y, level):
        return math.sin(y) if level == 0 else tree(0.5 * y, level - 1) + tree(y + 0.1, level - 1)

    return tree(x, depth)


# ------------------------------------------------------------------------------------------------ Numba's own language


@jitclass([("mass", float64), ("k", float64), ("x", float64), ("v", float64), ("n", int64)])
class Oscillator:
    def __init__(self, mass, k):
        self.mass, self.k = mass, k
        self.x, self.v, self.n = 1.0, 0.0, 0

    def step(self, dt):
        self.v -= dt * self.k / self.mass * self.x
        self.x += dt * self.v
        self.n += 1


@at(np.array([1.0, 2.0]), 8)
def oscillator_of_jitclass(p, n):
    oscillator = Oscillator(p[0], p[1])
    for _ in range(n):
        oscillator.step(0.1)
    return oscillator.x * oscillator.n


@vectorize([float64(float64, float64)])
def saturation(x, limit):
    return x if x < limit else limit + np.tanh(x - limit)


@at(np.array([0.5, 1.5, 2.5]))
def ufunc_of_numba(x):
    return np.sum(saturation(x, 1.0) ** 2)


@guvectorize([(float64[:], float64[:])], "(n)->()")
def spread(row, out):
    out[0] = np.max(row) - np.min(row)


@at(np.array([[1.0, 3.0, 2.0], [0.5, -1.0, 4.0]]))
def gufunc_of_numba(x):
    return np.sum(spread(x) ** 2)


@njit
def norms(x, n):
    found = []
    for k in range(n):
        found.append((x[k] ** 2, k))
    return found


@at(np.array([0.6, 0.1, 0.4]), 3)
def list_of_a_compiled_helper(x, n):
    return sum([v * (k + 1) for v, k in norms(x, n)])


@at(np.array([0.3, 1.0]), 6)
def numbers_of_a_seed(p, n):
    np.random.seed(5)
    total = 0.0
    for _ in range(n):
        total += np.exp(-(np.random.normal(p[0], p[1]) ** 2))
    return total


@at(np.array([2.0, 0.5]), 12)
def bootstrap(p, n):
    rng = np.random.default_rng(11)
    data = p[0] + p[1] * np.arange(4.0)
    total = 0.0
    for _ in range(n):
        sample = data[rng.integers(0, 4, 4)]
        total += np.mean(sample) ** 2
    return total / n


@at(0.5, 10)
def annealed_steps(x, n):
    rng = np.random.default_rng(2)
    energy = x * x
    for k in range(n):
        proposal = x + 0.1 * rng.uniform(-1.0, 1.0) / (k + 1)
        candidate = proposal * proposal + 0.1 * np.sin(3 * proposal)
        if candidate < energy:
            x, energy = proposal, candidate
    return energy + x


# ------------------------------------------------------------------------------------------------------- data and logs


@at(np.array([1.0, 0.3, 2.0]), {"w": 2, "name": "b"})
def settings_by_keys(x, settings):
    weights = {"a": 1.0, "b": 0.5, "c": 0.1}
    chosen = weights[settings["name"]] if "name" in settings else 1.0
    return chosen * np.sum(x ** settings["w"]) + settings.get("offset", 0.1) * x[0]


RECORD = np.dtype([("t", "f8"), ("value", "f8"), ("flag", "i4")])
READINGS = np.array([(0.0, 1.0, 1), (0.5, 2.0, 0), (1.0, 1.5, 1), (2.0, 0.2, 1)], RECORD)


@at(0.6, READINGS)
def readings_of_records(decay, readings):
    valid = readings[readings["flag"] == 1]
    total = 0.0
    for reading in valid:
        total += reading["value"] * math.exp(-decay * reading["t"])
    return total + np.mean(valid["value"]) * decay


@at(np.array([0.5, 0.2]), [1, 0, 2, 1, 0])
def events_with_a_stack(rates, events):
    stack, clock = [1.0], 0.0
    for event in events:
        clock += rates[0]
        if event == 1:
            stack.append(stack[-1] * (1.0 + rates[1]))
        elif event == 2 and len(stack) > 1:
            stack.pop()
        else:
            stack[-1] += clock
    return sum(stack) * clock


@at(0.9, [3.0, 1.0, 2.0])
def sorted_by_key(x, items):
    ranked = sorted(((x * v, k) for k, v in enumerate(items)), key=lambda pair: -pair[0])
    return sum(v / (place + 1) for place, (v, _) in enumerate(ranked))


@at(np.array([0.4, 1.1, 0.7]))
def running_totals(x):
    return sum(t**2 for t in itertools.accumulate(x)) + functools.reduce(lambda a, b: a * b, x)


class Tape:
    """What a simulation writes down."""

    def __init__(self):
        self.rows = []

    def write(self, **values):
        self.rows.append((values["t"], values["x"]))

    def mean(self):
        return sum(x for _, x in self.rows) / len(self.rows)


@at(0.7, 5)
def recorded_by_keywords(x, n):
    tape = Tape()
    for k in range(n):
        x = x * 0.9 + 0.05 * k
        tape.write(t=0.1 * k, x=x)
    return tape.mean() * tape.rows[-1][1]


@at(np.array([2.0, 1.0, 3.0]), [2, 0, 4])
def skipped_by_an_exception(x, counts):
    total = 0.0
    for value, n in zip(x, counts):
        try:
            total += float(value) / float(n) + math.log(value)
        except ZeroDivisionError:
            total += 0.5 * value**2
        finally:
            total += 0.1 * value
    return total


class Interval:
    """Numbers with bounds of their errors."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __add__(self, other):
        return Interval(self.low + other.low, self.high + other.high)

    def __neg__(self):
        return Interval(-self.high, -self.low)

    def __sub__(self, other):
        return self + (-other)

    def __mul__(self, k):
        return Interval(self.low * k, self.high * k) if k >= 0 else Interval(self.high * k, self.low * k)

    __rmul__ = __mul__

    def __contains__(self, x):
        return self.low <= x <= self.high

    def __bool__(self):
        return bool(self.high > self.low)

    @staticmethod
    def around(x, error):
        return Interval(x - error, x + error)


@at(np.array([1.2, 0.1]))
def interval_arithmetic(p):
    x = Interval.around(p[0], p[1])
    y = 2.0 * x - x * -0.5 + Interval(0.0, 1.0)
    if 3.0 in y and y:
        return y.high**2 - y.low
    return y.low


class Memo:
    """A function that remembers its values."""

    def __init__(self, function):
        self.function, self.known, self.calls = function, {}, 0

    def __call__(self, k):
        if k not in self.known:
            self.calls += 1
            self.known[k] = self.function(k)
        return self.known[k]


@at(0.4, np.array([3, 1, 3, 3, 2]))
def remembered_values(x, keys):
    memo = Memo(lambda k: math.sin(x * k))
    total = 0.0
    for k in keys:
        total += memo(k)
    return total * memo.calls


@at(np.array([0.6, 0.8]), np.array([3, 1, 2]))
def sparse_polynomial(x, powers):
    terms = {}
    for k in range(len(powers)):
        terms[powers[k], powers[-1 - k]] = 1.0 / (k + 1)
    total = 0.0
    for (a, b), c in terms.items():
        total += c * x[0] ** a * x[1] ** b
    return total


@at(0.7, 4)
def first_solution_of_a_generator(x, n):
    def iterates():
        y = x
        for _ in range(n):
            y = math.cos(y)
            yield y

    for k, y in enumerate(iterates()):
        if y > 0.75:
            return y * (k + 1)
    return y


@at(np.array([1.0, 0.2]))
def nested_settings(p):
    settings = {"solver": {"steps": 4, "dt": p[1]}, "model": {"rate": p[0]}}
    settings["solver"]["steps"] += 1
    y = 1.0
    for _ in range(settings["solver"]["steps"]):
        y -= settings["solver"]["dt"] * settings["model"]["rate"] * y
    return y


class Queue:
    """A server with customers in a list."""

    def __init__(self, service):
        self.service, self.waiting, self.clock = service, [], 0.0

    def arrive(self, at):
        self.waiting.append(at)

    def serve(self):
        start = self.waiting.pop(0)
        self.clock = max(self.clock, start) + self.service
        return self.clock - start


@at(0.7, np.array([0.0, 0.5, 0.9, 3.0]))
def waiting_times(service, arrivals):
    queue, total = Queue(service), 0.0
    for arrival in arrivals:
        queue.arrive(arrival)
        total += queue.serve() ** 2
    return total


@at(np.array([0.3, 0.5]))
def method_chosen_by_name(x):
    names = ("sin", "cosh")
    return sum(getattr(np, name)(v) for name, v in zip(names, (x[0], x[1])))
