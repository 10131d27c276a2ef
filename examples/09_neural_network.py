"""A neural network with two hidden layers and a softmax learns to classify three spirals."""

import sys

import numpy as np

import srcdiff


def scores(layers, x):
    """A row of scores for each point. A layer is a pair: a matrix of weights and a vector of offsets."""
    for weights, offsets in layers[:-1]:
        x = np.tanh(x @ weights + offsets)
    weights, offsets = layers[-1]
    return x @ weights + offsets


def loss(layers, x, labels):
    """The mean cross-entropy of the softmax and the labels."""
    s = scores(layers, x)
    shifted = s - np.max(s, axis=1, keepdims=True)  # avoids overflow
    log_p = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return -np.mean(log_p[np.arange(len(labels)), labels])


random = np.random.default_rng(1)
labels = np.repeat(np.arange(3), 60)
radius = np.tile(np.linspace(0.1, 1.0, 60), 3)
angle = 4.0 * radius + 2.0 * np.pi / 3.0 * labels
x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1) + 0.01 * random.standard_normal((180, 2))

# The gradient with respect to a nested tuple is a nested tuple of the same structure.
layers = tuple((random.standard_normal((m, n)) / np.sqrt(m), np.zeros(n)) for m, n in [(2, 16), (16, 16), (16, 3)])
print(srcdiff.check(loss, layers, x, labels, wrt="layers", backend="python"))  # one call is not worth compiling

# Adam, in plain NumPy.
loss_and_gradient = srcdiff.value_and_grad(loss)
means = [[np.zeros_like(p) for p in layer] for layer in layers]
squares = [[np.zeros_like(p) for p in layer] for layer in layers]
for iteration in range(1, 402):
    value, layers_bar = loss_and_gradient(layers, x, labels)
    if iteration % 100 == 1:
        print(f"iteration {iteration - 1:3}: loss {value:.4f}")
    for each in zip(layers, layers_bar, means, squares, strict=True):
        for p, p_bar, mean, square in zip(*each, strict=True):
            mean += 0.1 * (p_bar - mean)
            square += 0.01 * (p_bar**2 - square)
            p -= 0.02 * mean / (1.0 - 0.9**iteration) / (np.sqrt(square / (1.0 - 0.99**iteration)) + 1e-8)

right = np.mean(np.argmax(scores(layers, x), axis=1) == labels)
print(f"{100.0 * right:.1f} % of the points are classified correctly")
assert right > 0.98

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    across, up = np.meshgrid(np.linspace(-2.0, 2.0, 400), np.linspace(-1.2, 1.2, 240))
    classes = np.argmax(scores(layers, np.stack([across.ravel(), up.ravel()], axis=1)), axis=1)
    plt.contourf(across, up, classes.reshape(across.shape), levels=[-0.5, 0.5, 1.5, 2.5], alpha=0.3)
    plt.scatter(x[:, 0], x[:, 1], c=labels, s=8)
    plt.axis("equal")
    plt.savefig(sys.argv[1])
