"""Tallymark: write jobs of a data lake that leave exactly the files they committed."""
