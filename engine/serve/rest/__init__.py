"""What people and their tools read of the tables below the roots, over HTTP."""
