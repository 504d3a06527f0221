"""Runs of marker servers without a table: plan, world, server and judge."""
