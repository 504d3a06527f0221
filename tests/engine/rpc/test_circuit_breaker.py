from tallymark.engine.rpc.circuit_breaker import Outage


def test_only_its_first_sign_is_news_and_only_the_first_of_its_end():
    outage = Outage()
    assert not outage.end()
    assert [outage.begin(now, pause_s=30) for now in (0.0, 1.0)] == [True, False]
    assert outage.is_on
    assert [outage.end() for _ in range(2)] == [True, False]
    assert not outage.is_on


def test_one_caller_in_every_pause_is_to_try():
    outage = Outage()
    outage.begin(100.0, pause_s=30)
    assert [now for now in range(100, 200, 5) if outage.is_try_due(now, pause_s=30)] == [130, 160, 190]


def test_a_service_that_is_missed_again_is_left_alone_for_a_whole_pause():
    outage = Outage()
    outage.begin(100.0, pause_s=30)
    outage.begin(120.0, pause_s=30)
    assert not outage.is_try_due(149.9, pause_s=30)
    assert outage.is_try_due(150.0, pause_s=30)


def test_without_an_outage_there_is_nothing_to_try():
    assert not Outage().is_try_due(1e9, pause_s=0)
