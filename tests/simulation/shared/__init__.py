"""Services outside of the drivers: several for one table, each of which dies and starts again."""
