"""What the plugins of several runners share: rows, prompts and requests in the form that runners take."""
