"""Contrastive training of the table: each question with its own code, against all other code of the batch.

InfoNCE over batches of blocks of neighbouring rows, so that many negatives are of the same file or package.
Query and code side share the table and differ in the weight of each word. A second loss keeps the similarities between
questions as MiniLM has them (relational distillation: Park et al., 2019).
"""

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import torch
from torch.nn import functional

from scripts.train_embedder.export import Model
from scripts.train_embedder.minilm import Vectors
from scripts.train_embedder.sampling import Batch, Sparse
from scripts.train_embedder.start import Start
from scripts.train_embedder.teacher import Teacher


class Settings(NamedTuple):
    """Settings of the training."""

    steps: int = 650
    """More steps overfit the training packages."""
    rate: float = 0.004
    weight_rate: float = 0.02
    temperature: float = 0.05
    teacher: float = 0.5
    """Weight of the second loss, taken at every other step."""
    taught: int = 1024
    """Questions compared in a step of the second loss."""
    threads: int = 2


WARM_UP: Final = 50
LEAST: Final = 1e-4
"""Weight below which the inverse of softplus is no longer exact."""
SHARPEST: Final = 50.0
TEACHER_SCALE: Final = 10.0
FORWARD: Final = 0.7
"""Weight of the loss from question to code; the rest is from code to question."""
REPORT: Final = 50
REMEMBERED: Final = 0.98
"""Decay of the running averages per step."""


class _Product(torch.autograd.Function):
    """Sparse bags times a dense table; the backward pass is the transposed product."""

    @staticmethod
    def forward(ctx: Any, table: torch.Tensor, bags: Sparse) -> torch.Tensor:
        ctx.bags = bags
        return torch.from_numpy(bags @ table.numpy())

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        return torch.from_numpy(ctx.bags.T @ grads[0].contiguous().numpy()), None


class Table(torch.nn.Module):
    """The trained parameters."""

    def __init__(self, start: Start, settings: Settings) -> None:
        super().__init__()
        self.rows = torch.nn.Parameter(torch.from_numpy(start.rows.copy()))
        self.code, self.query = (
            torch.nn.Parameter(_before_softplus(side))
            for side in (start.code, start.query)
        )
        self.scale = torch.nn.Parameter(
            torch.tensor(math.log(1 / settings.temperature))
        )

    def embed(self, bags: Sparse, weights: torch.Tensor) -> torch.Tensor:
        """Return unit rows for bags, with one side's weights."""
        weighted = self.rows * functional.softplus(weights)[:, None]
        return functional.normalize(_Product.apply(weighted, bags), dim=1)

    def model(self, words: list[str]) -> Model:
        """Return the table with unit rows; their lengths are multiplied into the weights."""
        with torch.no_grad():
            lengths = self.rows.norm(dim=1)
            sides = (
                functional.softplus(side) * lengths for side in (self.code, self.query)
            )
            return Model(
                words,
                functional.normalize(self.rows, dim=1).numpy(),
                *(side.numpy() for side in sides),
            )


def _before_softplus(weights: Vectors) -> torch.Tensor:
    return torch.log(torch.expm1(torch.from_numpy(weights).clamp(min=LEAST)))


def contrast(table: Table, batch: Batch) -> tuple[torch.Tensor, float]:
    """Return the loss of a batch and the share of questions whose own code came first."""
    questions = table.embed(batch.questions, table.query)
    code = table.embed(batch.code, table.code)
    likeness = questions @ code.t() * table.scale.exp().clamp(max=SHARPEST)
    likeness = likeness.masked_fill(torch.from_numpy(batch.same), -1e4)
    own = torch.arange(len(likeness))
    loss = FORWARD * functional.cross_entropy(likeness, own) + (
        1 - FORWARD
    ) * functional.cross_entropy(likeness.t(), own)
    return loss, (likeness.detach().argmax(1) == own).float().mean().item()


def relation(table: Table, bags: Sparse, wanted: Vectors) -> torch.Tensor:
    """Return the distance of the similarities among questions from the teacher's."""
    ours = table.embed(bags, table.query)
    theirs = torch.from_numpy(wanted)
    itself = torch.eye(len(theirs), dtype=torch.bool)
    mine, aim = (
        (side @ side.t() * TEACHER_SCALE).masked_fill(itself, -1e4)
        for side in (ours, theirs)
    )
    return functional.kl_div(
        functional.log_softmax(mine, 1),
        functional.softmax(aim, 1),
        reduction="batchmean",
    )


def train(
    table: Table, draw: Callable[[], Batch], teacher: Teacher | None, settings: Settings
) -> None:
    """Train for the given steps."""
    torch.set_num_threads(settings.threads)
    groups = [
        {"params": [table.rows]},
        {"params": [table.code, table.query]},
        {"params": [table.scale]},
    ]
    optimiser = torch.optim.Adam(
        groups, lr=settings.rate, betas=(0.9, 0.98), fused=True
    )
    loss, hits = 0.0, 0.0
    for step in range(settings.steps):
        _set_rates(optimiser, settings, step)
        new_loss, new_hits = _step(
            table, draw(), teacher if step % 2 else None, optimiser, settings
        )
        share = REMEMBERED if step else 0.0
        loss, hits = (
            share * loss + (1 - share) * new_loss,
            share * hits + (1 - share) * new_hits,
        )
        if step % REPORT == REPORT - 1:
            print(
                f"{step + 1} loss {loss:.3f} first {hits:.3f} scale {table.scale.exp().item():.1f}",
                flush=True,
            )


def _step(
    table: Table,
    batch: Batch,
    teacher: Teacher | None,
    optimiser: torch.optim.Optimizer,
    settings: Settings,
) -> tuple[float, float]:
    loss, hits = contrast(table, batch)
    total = (
        loss + settings.teacher * relation(table, *teacher.draw(settings.taught))
        if teacher
        else loss
    )
    optimiser.zero_grad()
    total.backward()
    optimiser.step()
    return loss.item(), hits


def _set_rates(optimiser: torch.optim.Optimizer, settings: Settings, step: int) -> None:
    """Warm up, then fall along a cosine."""
    factor = min(1.0, (step + 1) / WARM_UP) * max(
        0.02, 0.5 * (1 + math.cos(math.pi * step / settings.steps))
    )
    for group, rate in zip(
        optimiser.param_groups, (settings.rate, settings.weight_rate, 1e-3), strict=True
    ):
        group["lr"] = rate * factor
