"""Arrow rows made fit for a table: conformed, cast, measured and encoded as Parquet."""
