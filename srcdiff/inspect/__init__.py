"""Looking at what the compiler has done: from what its steps have left behind to text, colour and HTML."""
