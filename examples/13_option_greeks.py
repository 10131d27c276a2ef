"""The Greeks of options, of first and second order: a formula against the textbook, and a tree with early exercise."""

import math
import sys

import numpy as np

import srcdiff


def normal(x):
    """The cumulative distribution function of the standard normal distribution."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def call_price(spot, strike, rate, volatility, years):
    """The price of a European call, by Black and Scholes."""
    spread = volatility * math.sqrt(years)
    d1 = (math.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    return spot * normal(d1) - strike * math.exp(-rate * years) * normal(d1 - spread)


market = (100.0, 110.0, 0.03, 0.25, 0.75)
spot, strike, rate, volatility, years = market
spread = volatility * math.sqrt(years)
d1 = (math.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
d2 = d1 - spread
density = math.exp(-0.5 * d1**2) / math.sqrt(2.0 * math.pi)


def compare(name, greek, textbook):
    print(f"{name:8} {greek:14.10f}   textbook {textbook:14.10f}")
    assert math.isclose(greek, textbook, rel_tol=1e-12)  # only rounding errors


# One reverse sweep gives the price and all first-order Greeks.
price, (delta, rho, vega, theta) = srcdiff.value_and_grad(call_price, wrt=("spot", "rate", "volatility", "years"))(
    *market
)
print(f"price    {price:14.10f}")
compare("delta", delta, normal(d1))
compare("vega", vega, spot * density * math.sqrt(years))
compare("rho", rho, strike * years * math.exp(-rate * years) * normal(d2))
compare("theta", -theta, -spot * density * volatility / (2.0 * math.sqrt(years)) - rate * rho / years)

# A gradient is a function, so it has gradients too.
delta_of = srcdiff.grad(call_price, wrt="spot")
gamma, vanna = srcdiff.grad(delta_of, wrt=("spot", "volatility"))(*market)
volga = srcdiff.grad(srcdiff.grad(call_price, wrt="volatility"), wrt="volatility")(*market)
speed = srcdiff.grad(srcdiff.grad(delta_of, wrt="spot"), wrt="spot")(*market)
compare("gamma", gamma, density / (spot * spread))
compare("vanna", vanna, -density * d2 / volatility)
compare("volga", volga, vega * d1 * d2 / volatility)
compare("speed", speed, -gamma / spot * (d1 / spread + 1.0))


def american_put(spot, strike, rate, volatility, years, steps):
    """The price of an American put, by a binomial tree (Cox, Ross and Rubinstein) that is evaluated in place."""
    step = years / steps
    up = math.exp(volatility * math.sqrt(step))
    down = 1.0 / up
    chance = (math.exp(rate * step) - down) / (up - down)
    discount = math.exp(-rate * step)
    value = np.empty(steps + 1)
    for i in range(steps + 1):
        value[i] = max(strike - spot * up ** (2 * i - steps), 0.0)
    for t in range(steps - 1, -1, -1):
        for i in range(t + 1):
            later = discount * (chance * value[i + 1] + (1.0 - chance) * value[i])
            value[i] = max(later, strike - spot * up ** (2 * i - t))
    return value[0]


tree = srcdiff.value_and_grad(american_put, wrt=("spot", "rate", "volatility", "years"))
price, (delta, rho, vega, theta) = tree(*market, 500)
print(f"\nAmerican put, 500 steps: {price:.4f}, delta {delta:.4f}, vega {vega:.3f}, rho {rho:.3f}, theta {-theta:.3f}")
assert -1.0 < delta < 0.0 < vega
print(srcdiff.check(american_put, *market, 50, wrt=("rate", "volatility", "years"), backend="python"))

# The price is homogeneous: if spot and strike double, it doubles. So Euler's theorem holds, through all branches.
_, (by_spot, by_strike) = srcdiff.value_and_grad(american_put, wrt=("spot", "strike"))(*market, 500)
assert math.isclose(by_spot * spot + by_strike * strike, price, rel_tol=1e-12)

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    spots = np.linspace(60.0, 160.0, 101)
    greeks = np.array([tree(s, *market[1:], 500)[1] for s in spots])
    for name, column in zip(("delta", "rho", "vega", "d price / d years"), greeks.T, strict=True):
        plt.plot(spots, column / np.max(np.abs(column)), label=name)
    plt.xlabel("spot")
    plt.ylabel("of the largest")
    plt.legend()
    plt.savefig(sys.argv[1])
