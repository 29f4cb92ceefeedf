"""Task files: a dataset, how its rows become prompts, and the model they are for."""
