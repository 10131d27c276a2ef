"""The interpreter: what each piece of syntax means, over an abstract state."""
