"""A loop with a branch as a layer of a PyTorch model: autograd trains a network in front of a simulation."""

import numpy as np
import torch

from srcdiff.bridges.torch import function


def flight(angle, speed, drag, steps):
    """The distance that a ball flies, in steps of 10 ms, until it hits the ground."""
    x, y = 0.0, 0.0
    vx, vy = speed * np.cos(angle), speed * np.sin(angle)
    for _ in range(steps):
        size = np.sqrt(vx * vx + vy * vy)
        vx -= 0.01 * drag * size * vx
        vy -= 0.01 * (9.81 + drag * size * vy)
        if y + 0.01 * vy < 0.0:
            return x + vx * y / -vy  # interpolate between the last two steps
        x += 0.01 * vx
        y += 0.01 * vy
    return x


distance = function(flight)

# A small network chooses angle and speed for a wanted distance, and learns through the simulation.
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).double()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
wanted = torch.linspace(5.0, 15.0, 6, dtype=torch.float64)


def reached(goal):
    angle, speed = model(goal[None] / 10.0 - 1.0)
    return distance(0.8 + 0.2 * torch.tanh(angle), 10.0 + 5.0 * torch.tanh(speed), 0.01, 1000)


for step in range(301):
    optimizer.zero_grad()
    loss = sum((reached(goal) - goal) ** 2 for goal in wanted) / len(wanted)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: off by {loss.item() ** 0.5:.3f} m")

for goal in wanted:
    print(f"wanted {goal:.1f} m, reached {reached(goal).item():.2f} m")
assert loss.item() < 0.05

# PyTorch's own check of first derivatives, by finite differences.
angle, speed = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.7, 11.0))
assert torch.autograd.gradcheck(lambda a, v: distance(a, v, 0.01, 1000), (angle, speed))
