"""The question ``defects``: what becomes of acked markers when a server dies, an answer is lost, storage refuses?

What reading the source of Hudi's server suggests, tried on the released one, and on ours in the same way. Each trial is
one module, and says of each side what was tried, how often, and what was seen:

    restart    lost_answer    kills    full_storage    slow_instant    partitions    detector    reads    missing_folder

    trial      what a trial is                    side        what it asks of both: our_side, hudi_side
    asking     clients under load                 proxy       loses an answer        stored    what lies on the disk
    run        all of them, one after the other   answer      as JSON                report    as tables

``our_server`` is the program of our server's process; ``hudi_client`` is Hudi's own Java client.
"""
