"""S3 and GCS: requests, errors, claims, and conformance on servers."""
