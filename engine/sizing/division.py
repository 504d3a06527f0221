"""How bytes are divided among files, so that as few as can be stay small."""

from collections.abc import Sequence


def divided(files: Sequence[tuple[int, int]], bytes_: int, *, small: int, most: int) -> list[int]:
    """What each file is given; it adds up to ``bytes_``.

    A file is what it has already and the least that it is to be given. Where all can come to ``small``, they come as
    near to one size as they can; else the first are filled to ``most``, and the last that is given any has the rest.
    """
    floors = [has + least for has, least in files]
    total = bytes_ + sum(has for has, _ in files)
    if sum(max(floor, small) for floor in floors) <= total:
        sizes = _levelled(floors, total)
    else:
        sizes = _filled_in_turn(floors, total, most)
    return [size - has for size, (has, _) in zip(sizes, files, strict=True)]


def _levelled(floors: Sequence[int], total: int) -> list[int]:
    """Sizes that add up to the total, the lowest as high as can be, none below its floor."""
    sizes = list(floors)
    left = total
    for place, count in zip(
        sorted(range(len(floors)), key=lambda at: -floors[at]), range(len(floors), 0, -1), strict=True
    ):
        sizes[place] = max(floors[place], -(-left // count))
        left -= sizes[place]
    return sizes


def _filled_in_turn(floors: Sequence[int], total: int, most: int) -> list[int]:
    sizes = list(floors)
    left = total - sum(sizes)
    for place, floor in enumerate(floors):
        given = min(left, most - floor)
        sizes[place] += given
        left -= given
    return sizes
