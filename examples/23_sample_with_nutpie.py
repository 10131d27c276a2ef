"""Sample a posterior with nutpie: a model of predators and prey, whose loop solves a differential equation."""

import numpy as np
import nutpie

from srcdiff.bridges.nutpie import model


def populations(rates, start, years, steps):
    """Prey and predators each year, by the midpoint method."""
    found = np.empty((years + 1, 2))
    prey, predators = start[0], start[1]
    found[0, 0], found[0, 1] = prey, predators
    for year in range(years):
        for _ in range(steps):
            half = 0.5 / steps
            prey_half = prey + half * (rates[0] - rates[1] * predators) * prey
            predators_half = predators + half * (rates[3] * prey - rates[2]) * predators
            prey += 2.0 * half * (rates[0] - rates[1] * predators_half) * prey_half
            predators += 2.0 * half * (rates[3] * prey_half - rates[2]) * predators_half
        found[year + 1, 0], found[year + 1, 1] = prey, predators
    return found


def log_density(p, centres, counted):
    """Log-normal priors around the centres, and counts with an error of a constant ratio."""
    found = populations(np.exp(p["log_rates"]), np.exp(p["log_start"]), len(counted) - 1, 10)
    total = -2.0 * np.sum((p["log_rates"] - centres["rates"]) ** 2) - 2.0 * np.sum(
        (p["log_start"] - centres["start"]) ** 2
    )
    total -= 2.0 * (p["log_error"] + 1.0) ** 2
    for year in range(len(counted)):
        for which in range(2):
            z = (np.log(counted[year, which]) - np.log(found[year, which])) * np.exp(-p["log_error"])
            total -= p["log_error"] + 0.5 * z * z
    return total


rates, start = np.array([0.55, 0.03, 0.8, 0.025]), np.array([30.0, 5.0])
random = np.random.default_rng(1)
counted = populations(rates, start, 20, 10) * np.exp(0.2 * random.normal(size=(21, 2)))

centres = {"rates": np.log([0.5, 0.02, 0.7, 0.02]), "start": np.log([25.0, 6.0])}
example = {"log_rates": centres["rates"], "log_start": centres["start"], "log_error": -1.0}
made = model(
    log_density,
    example,
    centres,
    counted,
    jitter=0.1,
    expand=lambda p, centres, counted: {"rates": np.exp(p["log_rates"]), "error": np.exp(p["log_error"])},
    dims={"rates": ["rate"]},
    coords={"rate": ["growth", "hunting", "death", "feeding"]},
)
trace = nutpie.sample(made, draws=1000, tune=500, chains=4, cores=2, seed=1, progress_bar=False)

print("parameters:", ", ".join(f"{name} {shape}" for name, shape in made.shapes.items()))
drawn = trace.posterior["rates"]
for k, name in enumerate(drawn["rate"].values):
    values = drawn.values[:, :, k]
    print(f"{name:8} {values.mean():.3f} +- {values.std():.3f}, and it was {rates[k]:.3f}")
    assert abs(values.mean() - rates[k]) < 3.0 * values.std()
print(f"error    {float(trace.posterior['error'].mean()):.3f}, and it was 0.2")
assert abs(float(trace.posterior["error"].mean()) - 0.2) < 0.06
