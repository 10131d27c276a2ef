"""Step 6, backends: from generated source to a function that runs."""
