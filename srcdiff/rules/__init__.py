"""The derivative rules: one row for each primitive, independent of passes and backends.

The table is `RULES`, by the name of the primitive.
"""

from srcdiff.rules import scalars, scipy_rows
from srcdiff.rules.table import CONSTANTS, OPERATORS, RULES, Edge, Rule, application, derivative_rule

__all__ = ["CONSTANTS", "OPERATORS", "RULES", "Edge", "Rule", "application", "derivative_rule", "scalars", "scipy_rows"]
