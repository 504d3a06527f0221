"""The task level: Arrow batches in, marked and sized Parquet files out."""
