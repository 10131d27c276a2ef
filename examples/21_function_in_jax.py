"""A simulation with an early exit inside JAX: jit, vmap, scan and Newton's method, with derivatives by srcdiff."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads

from srcdiff.bridges.jax import function

jax.config.update("jax_enable_x64", True)


def flight(angle, speed, drag):
    """How far a ball flies, in steps of 10 ms, until it hits the ground: a loop that JAX could not differentiate."""
    x, y = 0.0, 0.0
    vx, vy = speed * np.cos(angle), speed * np.sin(angle)
    while True:
        size = np.sqrt(vx * vx + vy * vy)
        vx -= 0.01 * drag * size * vx
        vy -= 0.01 * (9.81 + drag * size * vy)
        if y + 0.01 * vy < 0.0:
            return x + vx * y / -vy  # interpolate between the last two steps
        x += 0.01 * vx
        y += 0.01 * vy


distance = function(flight)
check_grads(distance, (0.7, 11.0, 0.01), order=2, modes=("fwd", "rev"))  # JAX's own check

# The speeds that reach a wall at different distances, by Newton's method: a batch of loops inside of jit.
wanted = jnp.linspace(5.0, 15.0, 6)


@jax.jit
@jax.vmap
def speed_for(goal):
    def newton(speed, _):
        value, slope = jax.value_and_grad(lambda v: distance(0.8, v, 0.01))(speed)
        return speed - (value - goal) / slope, None

    return jax.lax.scan(newton, 10.0, length=8)[0]


speeds = speed_for(wanted)
reached = jax.vmap(distance, (None, 0, None))(0.8, speeds, 0.01)
for goal, speed, found in zip(wanted, speeds, reached, strict=True):
    print(f"wanted {goal:4.1f} m: {speed:.3f} m/s reach {found:.6f} m")
assert jnp.allclose(reached, wanted, atol=1e-9)

# By how much must the speed change if the drag changes? The derivative of the solution, through Newton's method.
slope = jax.jacfwd(lambda drag: jax.vmap(distance, (None, 0, None))(0.8, speeds, drag))(0.01)
print("metres lost for a drag that is higher by 0.001:", (-0.001 * slope).round(3))
assert bool(jnp.all(slope < 0.0))
