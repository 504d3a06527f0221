"""Jobs on an HDFS whose servers restart or stay away."""
