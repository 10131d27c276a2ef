"""Settings of one loop for LLVM: metadata at the instruction that goes back to its start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir


def settings_of_loop(module: Any, *settings: Sequence[Any]) -> Any:
    """The metadata: a node that has itself as its first part, as LLVM identifies loops."""
    parts = [module.add_metadata(list(setting)) for setting in settings]
    node = module.add_metadata([ir.Constant(ir.IntType(32), len(module.metadata))])
    node.operands = (node, *parts)
    return node
