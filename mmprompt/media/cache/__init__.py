"""A cache of changed media, in memory or in a folder."""
