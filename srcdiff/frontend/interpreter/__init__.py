"""The interpreter: the meaning of each piece of syntax, over an abstract state."""
