from tallymark.bench.writes.hands import SideFailed
from tallymark.bench.writes.order import Done
from tallymark.bench.writes.process_tree import Spent
from tallymark.bench.writes.rounds import RoundMethod, take_rounds


class Counted:
    """A side whose n-th write takes n seconds."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self._log = log

    def write(self, number: int) -> Done:
        self._log.append(self.name)
        spent = Spent(driver_s=0, jvm_s=2.0 * number, python_s=0, forks_s=0)
        return Done(wall_s=number, spent=spent)


def test_each_round_has_one_write_of_every_side_and_begins_with_another():
    log: list[str] = []
    take_rounds([Counted(name, log) for name in "abc"], RoundMethod(rounds=3, warm_up=1))
    assert "".join(log) == "abc" + "bca" + "cab" + "abc"


def test_rounds_to_warm_up_do_not_count():
    taken = take_rounds([Counted("a", [])], RoundMethod(rounds=3, warm_up=2))
    assert [done.wall_s for done in taken["a"]] == [2, 3, 4]
    assert [done.cpu_s for done in taken["a"]] == [4, 6, 8]


def test_a_side_that_fails_on_the_way_loses_its_place_and_no_other_does():
    class Failing(Counted):
        def write(self, number: int) -> Done:
            if number == 1:
                raise SideFailed("no more memory")
            return super().write(number)

    told = {}
    sides = [Counted("a", []), Failing("b", [])]
    taken = take_rounds(
        sides, RoundMethod(rounds=3, warm_up=0), lost=lambda name, error: told.update({name: str(error)})
    )
    assert {name: len(done) for name, done in taken.items()} == {"a": 3}
    assert told == {"b": "no more memory"}


def test_the_method_says_what_was_done():
    text = str(RoundMethod(rounds=7, warm_up=3, scale=0.5, codec="snappy", cores=4))
    assert "local[4]" in text
    assert "7 rounds, after 3 to warm up" in text
    assert "Codec snappy" in text
    assert "whole process tree" in text
