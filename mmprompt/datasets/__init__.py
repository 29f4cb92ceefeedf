"""Samples, and one file for each dataset format."""
