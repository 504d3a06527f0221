"""Read-only answers about a table: status, explanations, snapshots, file sizes."""
