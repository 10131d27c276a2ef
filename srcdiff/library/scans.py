"""Sums and products along the way."""

from __future__ import annotations

from typing import Any

FUNCTIONS: dict[Any, Any] = {}
