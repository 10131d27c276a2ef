"""`batched(jacobian)`: two errors by a camera and a point, for all observations in one call."""

from benchmarks.patterns import bundle_jacobian

SIZE, SIZES, WRT, IS_GRADIENT = bundle_jacobian.SIZE, bundle_jacobian.SIZES, bundle_jacobian.WRT, False
arguments, primal, hand, by_jax = (
    bundle_jacobian.arguments,
    bundle_jacobian.primal,
    bundle_jacobian.hand,
    bundle_jacobian.by_jax,
)


def by_srcdiff():
    import srcdiff

    jacobians = srcdiff.batched(srcdiff.jacobian(primal, wrt=WRT))
    return lambda cameras, points: (0.0, jacobians(cameras, points))
