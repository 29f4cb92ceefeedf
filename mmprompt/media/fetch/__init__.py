"""Fetching http(s) URLs: allowed hosts, public addresses, guarded connections, retries."""
