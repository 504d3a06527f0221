"""The question ``writes``: what does a whole write of a DataFrame take, beside what one would use instead?

    command             the command line         question       a whole run, its tables
    place, object_place, hdfs_place, places      local disk, S3, HDFS
    case, data     what is written
    sides          who takes part                rounds         one write of each in turn
    bundle         the Spark and Hadoop of a side's Python
    session        a side's jars and settings    killer         what ends a write half way, for the question killed
    hands          the parent's end of a worker  worker         a side's process and its Spark session
    order          messages of a worker          process_tree   its CPU
    apart          memory of a call

The writers stand in ``bench/peers/writers``, one file each. Spark is imported in the workers only.
"""
