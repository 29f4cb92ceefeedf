"""What a task sends and what a model answered, for people: in the terminal, as a page, in a notebook."""
