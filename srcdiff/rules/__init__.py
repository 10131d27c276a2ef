"""The mathematics: one row a primitive, no pass and no target.

What comes in: nothing. What goes out: `RULES`, by the name of the primitive.
"""

from srcdiff.rules import scalars
from srcdiff.rules.table import CONSTANTS, OPERATORS, RULES, Edge, Rule, application, derivative_rule

__all__ = ["CONSTANTS", "OPERATORS", "RULES", "Edge", "Rule", "application", "derivative_rule", "scalars"]
