"""The built-in model ``builtin:shapes``: a small network that names the colour or the shape in a drawn picture."""
