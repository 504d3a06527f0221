"""What the URL does not say of a store: values that may travel, and no secrets."""

import pickle  # noqa: TID251, what Spark and process pools do

import pytest

from tallymark.backends import InvalidPath, StorageOptions


def test_options_travel_and_can_be_compared():
    options = StorageOptions(endpoint="https://minio.example", hadoop=(("dfs.nameservices", "lake"),))
    assert pickle.loads(pickle.dumps(options)) == options
    assert len({options, StorageOptions(), StorageOptions()}) == 2


@pytest.mark.parametrize("provider", ["company.cloud:keys", "keys:give"])
def test_a_provider_of_credentials_is_named(provider):
    assert StorageOptions(credentials=provider).credentials == provider


@pytest.mark.parametrize("given", ["AKIA1234", "a/b:c", "", "company.cloud", "key:secret+/"])
def test_keys_in_place_of_a_provider_are_refused_and_not_repeated(given):
    with pytest.raises(InvalidPath, match=r"package\.module:function") as caught:
        StorageOptions(credentials=given)
    assert not given or given not in str(caught.value)


@pytest.mark.parametrize("key", ["fs.s3a.secret.key", "some.password", "fs.s3a.access.key", "x.token"])
def test_a_secret_among_hadoops_settings_is_refused_and_not_repeated(key):
    with pytest.raises(InvalidPath, match=key) as caught:
        StorageOptions(hadoop=((key, "canary"),))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("key", ["hadoop.security.credential.provider.path", "dfs.namenode.rpc-address.lake.nn1"])
def test_other_settings_of_hadoop_are_taken(key):
    assert StorageOptions(hadoop=((key, "x"),)).hadoop == ((key, "x"),)


@pytest.mark.parametrize(
    "setting",
    ["connect_timeout_s", "request_timeout_s", "answer_timeout_s", "data_bytes_per_s_min", "request_count_max"],
)
def test_a_limit_of_nothing_is_refused(setting):
    with pytest.raises(InvalidPath, match=setting):
        StorageOptions(**{setting: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "setting", ["retry_pause_s", "retry_throttled_pause_s", "retry_pause_max_s", "retry_budget_count"]
)
def test_repeats_may_be_without_pause_or_budget_and_never_below(setting):
    assert getattr(StorageOptions(**{setting: 0}), setting) == 0  # type: ignore[arg-type]
    with pytest.raises(InvalidPath, match=f"{setting}=-1: {setting} is a number, 0 or more"):
        StorageOptions(**{setting: -1})  # type: ignore[arg-type]


def test_a_call_is_made_once_at_least():
    assert StorageOptions(retry_attempt_count=1).retry_attempt_count == 1
    with pytest.raises(InvalidPath, match="retry_attempt_count is a number above zero"):
        StorageOptions(retry_attempt_count=0)


def test_a_call_has_at_least_the_time_of_one_request():
    assert StorageOptions(request_timeout_s=60, answer_timeout_s=90).answer_timeout_s == 90
    with pytest.raises(InvalidPath, match=r"answer_timeout_s=20\.0: it is at least request_timeout_s, 60"):
        StorageOptions(request_timeout_s=60)
