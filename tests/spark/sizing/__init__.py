"""File sizing by the glue, with a real Spark: plans, samples, shares and fills."""
