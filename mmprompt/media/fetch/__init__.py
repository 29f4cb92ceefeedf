"""What an http(s) URL names: which hosts and addresses, connections, fetching."""
