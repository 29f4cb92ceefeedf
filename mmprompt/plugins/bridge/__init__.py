"""What the plugins of several runners share."""
