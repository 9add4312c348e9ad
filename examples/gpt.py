"""A small GPT reads plays of Shakespeare character by character, and writes on in their manner.

    python examples/gpt.py

The model is a dataclass of layers of `mlirml.nn`: an embedding, transformer blocks whose attention is causal and turns
queries and keys by their positions (Su et al., "RoFormer"), a normalization and the scores of the next character.
AdamW with warm-up, a cosine schedule and clipping trains it; a step is one compiled program. Text is sampled character
by character with a cache of keys and values, by one program too, whose scores are checked against those of the model
without a cache. The losses and a sample are drawn in gpt.png.

The text in examples/data/shakespeare.txt, "Romeo and Juliet" and parts of other plays, is in the public domain; it is
a part of data/tinyshakespeare/input.txt of github.com/karpathy/char-rnn.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mlirml as ml
from mlirml import nn, optim, random
from mlirml.nn import functional as F

BATCH, CONTEXT = 16, 96
TEXT = Path(__file__).parent / "data" / "shakespeare.txt"


@dataclass
class GPT:
    """Scores of the next character at each position of a text."""

    embedding: nn.Embedding
    blocks: list[nn.TransformerEncoderBlock]
    norm: nn.LayerNorm
    head: nn.Linear

    @classmethod
    def init(cls, key: Any, characters: int, size: int = 128, layers: int = 3, heads: int = 4) -> GPT:
        """A model with random weights."""
        keys = random.split(key, layers + 2)
        blocks = [
            nn.TransformerEncoderBlock.init(
                keys[i], size, heads, 4 * size, rotary=10000.0, activation=F.gelu, norm_first=True
            )
            for i in range(layers)
        ]
        embedding = nn.Embedding.init(keys[-2], characters, size)
        return cls(embedding, blocks, nn.LayerNorm.init(size), nn.Linear.init(keys[-1], size, characters))

    def __call__(self, tokens: Any) -> Any:
        """The scores [..., L, characters] after each of the tokens [..., L]."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, is_causal=True)
        return self.head(self.norm(x))

    def init_caches(self, length: int) -> list[nn.KVCache]:
        """Empty caches for a text of at most this length."""
        return [block.attention.init_cache(length) for block in self.blocks]

    def decode(self, tokens: Any, caches: list[nn.KVCache]) -> tuple[Any, list[nn.KVCache]]:
        """The scores after the next tokens [L], and the caches with these in them."""
        x, after = self.embedding(tokens), []
        for block, cache in zip(self.blocks, caches):
            x, cache = block(x, cache=cache)
            after.append(cache)
        return self.head(self.norm(x)), after


class Text:
    """A text as numbers of its characters, the last tenth of it held out."""

    def __init__(self, text: str) -> None:
        self.characters = sorted(set(text))
        tokens = self.encode(text)
        self.training, self.held_out = np.split(tokens, [len(tokens) * 9 // 10])

    def encode(self, text: str) -> np.ndarray:
        return np.array([self.characters.index(c) for c in text])

    def decode(self, tokens: Any) -> str:
        return "".join(self.characters[token] for token in tokens)


def windows(tokens: np.ndarray, starts: np.ndarray, length: int) -> np.ndarray:
    """The parts of a text that begin at `starts`."""
    return tokens[starts[:, None] + np.arange(length)]


def loss(model: GPT, tokens: Any) -> Any:
    """The mean of minus the logarithm of the probability of each character after those before it."""
    scores = model(tokens[:, :-1])
    return F.cross_entropy(scores.reshape(-1, scores.shape[-1]), tokens[:, 1:].reshape(-1))


def train(model: GPT, text: Text, steps: int, seed: int = 0) -> tuple[GPT, list[float], float]:
    """The trained model, the loss before each step, and the characters that are read in a second."""
    warm_up = steps // 10
    rate = optim.linear_warmup(optim.cosine(3e-3, steps - warm_up, end=1e-4), warm_up, start=0.1)
    optimiser = optim.adamw(rate, betas=(0.9, 0.98), weight_decay=0.01)

    @ml.compile
    def step(model: GPT, state: Any, tokens: Any) -> Any:
        value, gradient = ml.value_and_grad(loss)(model, tokens)
        model, state = optimiser.update(optim.clip_by_global_norm(gradient, 1.0), state, model)
        return value, model, state

    rng = np.random.default_rng(seed)
    state, losses, start = optimiser.init(model), [], 0.0
    for number in range(steps):
        starts = rng.integers(0, len(text.training) - CONTEXT, BATCH)
        value, model, state = step(model, state, windows(text.training, starts, CONTEXT + 1))
        losses.append(float(value))
        if number == 0:  # has compiled
            start = time.perf_counter()
        if number % 100 == 0 or number == steps - 1:
            print(f"step {number:3}: {losses[-1] / np.log(2):.2f} bits a character", flush=True)
    return model, losses, BATCH * CONTEXT * (steps - 1) / (time.perf_counter() - start)


@ml.compile
def write_one(model: GPT, token: Any, caches: Any, key: Any, temperature: Any) -> Any:
    """The scores after a token, a token drawn by them, and the next caches."""
    scores, caches = model.decode(token[None], caches)
    drawn = random.categorical(random.fold_in(key, caches[0].length), scores[0] / temperature)
    return scores[0], drawn, caches


def write(model: GPT, prompt: Any, length: int, temperature: float = 0.7, seed: int = 0) -> tuple[list[int], float]:
    """The tokens of a prompt and those that follow, up to this length, and how many are read or written in a second."""
    tokens, read, key = [int(token) for token in prompt], 0, random.key(seed)
    write_one(model, np.int64(0), model.init_caches(CONTEXT), key, temperature)  # compiles
    start, calls = time.perf_counter(), 0
    caches = model.init_caches(CONTEXT)
    while len(tokens) < length:
        if caches[0].length == CONTEXT:  # the cache is full: read the last half of it anew
            caches, read = model.init_caches(CONTEXT), read - CONTEXT // 2
            key = random.fold_in(key, read)
        _, drawn, caches = write_one(model, np.int64(tokens[read]), caches, key, temperature)
        read, calls = read + 1, calls + 1
        if read == len(tokens):
            tokens.append(int(drawn))
    return tokens, calls / (time.perf_counter() - start)


def error_of_decoding(model: GPT, tokens: np.ndarray) -> float:
    """The largest difference of the scores with a cache from those of the whole text at once."""
    caches, found = model.init_caches(CONTEXT), []
    for token in tokens:
        scores, _, caches = write_one(model, token, caches, random.key(0), 1.0)
        found.append(scores)
    return float(np.max(np.abs(np.stack(found) - model(tokens))))


def draw(losses: list[float], held_out: list[float], sample: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    left.plot(np.array(losses) / np.log(2), linewidth=1, label="training")
    left.plot([0, len(losses)], np.array(held_out) / np.log(2), "o", color="tab:red", label="held-out text")
    left.set(xlabel="step", ylabel="bits a character")
    left.legend()
    right.text(0, 1, sample, family="monospace", fontsize=8, verticalalignment="top")
    right.set_axis_off()
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300, help="steps of training (default: 300)")
    parser.add_argument("--layers", type=int, default=3, help="transformer blocks (default: 3)")
    parser.add_argument("--length", type=int, default=600, help="characters to write (default: 600)")
    parser.add_argument("--png", type=Path, default=Path("gpt.png"), help="the picture")
    given = parser.parse_args()
    text = Text(TEXT.read_text(encoding="utf-8"))
    model = GPT.init(random.key(0), len(text.characters), layers=given.layers)
    starts = np.linspace(0, len(text.held_out) - CONTEXT - 1, 64).astype(int)
    evaluate, parts = ml.compile(loss), windows(text.held_out, starts, CONTEXT + 1)
    held_out = [float(evaluate(model, parts))]
    model, losses, speed = train(model, text, given.steps)
    held_out.append(float(evaluate(model, parts)))
    before, after = np.array(held_out) / np.log(2)
    print(f"held-out text: {before:.2f} bits a character before training, {after:.2f} after it")
    print(f"training reads {speed:.0f} characters in a second")
    print(f"scores with the cache differ by {error_of_decoding(model, parts[0, :-1]):.1e} from those without")
    tokens, speed = write(model, text.encode("ROMEO:"), given.length)
    print(f"writing takes {1e6 / speed:.0f} us a character; a sample:\n")
    print(text.decode(tokens))
    draw(losses, held_out, text.decode(tokens), given.png)
    print(f"\ndrawn in {given.png}")


if __name__ == "__main__":
    main()
