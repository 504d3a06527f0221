"""Pages of the service, and the page of a table as one file: HTML from the JSON documents, by templates.

``pages`` renders, ``charts`` draws, ``assets`` has what a browser loads beside a page, ``report`` makes the file.
"""
