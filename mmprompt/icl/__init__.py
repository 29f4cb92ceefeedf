"""In-context examples, and the assembly of an ``infer_cfg`` into prompts."""
