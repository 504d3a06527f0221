"""Planners that are easy to foresee."""

from tallymark.engine.sizing.plan import PlannedFile, SizingPlan


def one_new_file(profile, _files, _settings):
    """A partition's rows in a file of their own."""
    return SizingPlan(files=tuple(PlannedFile(each.partition, each.rows, 1, None) for each in profile.incoming))


def one_file_ever(profile, files, _settings):
    """They fill the partition's one file."""
    of = {file.partition: file for file in files}
    return SizingPlan(
        files=tuple(PlannedFile(each.partition, each.rows, 1, of.get(each.partition)) for each in profile.incoming)
    )
