"""Question ``markers``: how long a marker takes until it is durable, and what a job writes for its markers.

    question     the parts of a run, its tables          command     the command line
    parts        their names
    sides        ours, and Hudi's timeline server        targets     how the load generator sends requests to them
    driver       the process of a job's service          memory      a store in memory with delays
    taking       what one load costs one side            file_writes files that are written below a folder

Parts about Hudi's own writers:

    hudi         their markers on Hudi's timeline server and on ``tallymark serve``
    hudi_jobs    their whole jobs                        hudi_writer the process of such a job

Parts about Tallymark alone, which also run as programs (``python -m tallymark.bench.markers.throughput``):

    model        acks and puts on a virtual clock, beside the arithmetic of paced group commit
    pace_cost    acks over puts on the real clock
    throughput   requests and markers that a service acks per second
    recovery     how long a service takes to load the markers that a crashed one has left
    outside      acks by ``tallymark serve`` beside those by the service in a driver
    disturbed    such acks beside other clients, which are in ``strangers``
    crowd        memory of ``tallymark serve`` with many tables and open jobs
    pages        times of pages and of REST: a table of a million files, and a fleet of 200 tables
    commits      puts of a write of 100, 1,000 and 10,000 files
"""
