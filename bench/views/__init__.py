"""Question ``views``: how long until a process knows which files a partition contains, and what that takes.

question     a whole run and its tables          command    the command line
sides        ours, Hudi's timeline server, a Delta log, and listings
targets      how the load generator sends lookups to them
ground, lookup                                   a table (``bench.made_table``) in all forms, and what is looked up
holder, held                                     the process that holds a view
server                                           the process of a job whose service answers lookups
"""
