"""mmprompt."""
