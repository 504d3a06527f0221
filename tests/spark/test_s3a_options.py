"""Hadoop's S3 settings as options of ours. No Spark runs here."""

import pytest

from tallymark.backends.options import StorageOptions
from tallymark.engine.errors import InvalidRequest
from tallymark.spark_glue.s3a_options import SECRETS, s3a_options

HADOOPS_OWN = (
    "\n  org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider,"
    "\n  org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider,"
    "\n  software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider,"
    "\n  org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider\n"
)
FROM_ENVIRONMENT = "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
PROVIDER = "fs.s3a.aws.credentials.provider"
KEYS = {"fs.s3a.access.key": "AKIAKEY", "fs.s3a.secret.key": "hush"}
IN_THE_ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "AKIAKEY"}


class Settings(dict[str, str]):
    """What a test has set."""

    def get(self, name: str) -> str | None:  # type: ignore[override]
        assert name not in SECRETS, "the value of a secret is never taken"
        return super().get(name)

    def is_set(self, name: str) -> bool:
        return name in self


def options(settings=None, environment=None, bucket="lake") -> StorageOptions:
    return s3a_options(bucket, Settings({PROVIDER: HADOOPS_OWN, **(settings or {})}), environment or {})


def test_a_session_that_was_told_nothing_gives_the_defaults():
    assert options() == StorageOptions()
    assert s3a_options("lake", Settings(), {}) == StorageOptions()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"fs.s3a.endpoint": "https://minio:9000"}, StorageOptions(endpoint="https://minio:9000", path_style=False)),
        ({"fs.s3a.endpoint": "minio:9000"}, StorageOptions(endpoint="https://minio:9000", path_style=False)),
        (
            {
                "fs.s3a.endpoint": " minio:9000 ",
                "fs.s3a.connection.ssl.enabled": "false",
                "fs.s3a.path.style.access": "TRUE",
            },
            StorageOptions(endpoint="http://minio:9000", path_style=True),
        ),
        ({"fs.s3a.endpoint.region": "eu-west-1"}, StorageOptions(region="eu-west-1")),
        ({"fs.s3a.endpoint": "s3.amazonaws.com"}, StorageOptions()),
        (
            {"fs.s3a.endpoint": "s3.eu-west-1.amazonaws.com"},
            StorageOptions(endpoint="https://s3.eu-west-1.amazonaws.com", region="eu-west-1", path_style=False),
        ),
        (
            {"fs.s3a.endpoint": "https://s3.cn-north-1.amazonaws.com.cn", "fs.s3a.endpoint.region": "cn-northwest-1"},
            StorageOptions(
                endpoint="https://s3.cn-north-1.amazonaws.com.cn", region="cn-northwest-1", path_style=False
            ),
        ),
        ({"fs.s3a.endpoint": "  ", "fs.s3a.endpoint.region": "sdk"}, StorageOptions()),
    ],
)
def test_where_the_server_is(settings, expected):
    assert options(settings) == expected


def test_what_is_set_for_the_bucket_goes_first():
    settings = {
        "fs.s3a.endpoint": "https://elsewhere",
        "fs.s3a.bucket.lake.endpoint": "https://minio:9000",
        "fs.s3a.bucket.lake.path.style.access": "true",
        "fs.s3a.bucket.other.endpoint.region": "mars-1",
    }
    assert options(settings) == StorageOptions(endpoint="https://minio:9000", path_style=True)
    assert options(settings, bucket="other").region == "mars-1"


@pytest.mark.parametrize(
    "provider",
    [
        "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider",
        "com.amazonaws.auth.EnvironmentVariableCredentialsProvider",
        "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
        "com.amazonaws.auth.InstanceProfileCredentialsProvider",
        "com.amazonaws.auth.WebIdentityTokenCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider",
        "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
        "com.amazonaws.auth.WebIdentityTokenCredentialsProvider, com.amazonaws.auth.InstanceProfileCredentialsProvider",
    ],
)
def test_providers_that_the_vendors_chain_has_anyway_need_no_option(provider):
    assert options({PROVIDER: provider}) == StorageOptions()
    assert options({PROVIDER: provider, **KEYS}) == StorageOptions(), "Hadoop would not read the keys either"


def test_a_provider_of_profiles_is_a_profile():
    provider = {PROVIDER: "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider"}
    assert options(provider).profile == "default"
    assert options(provider, {"AWS_PROFILE": "etl"}).profile == "etl"
    assert options({**provider, "fs.s3a.auth.profile.name": "lake"}, {"AWS_PROFILE": "etl"}).profile == "lake"


def test_of_profiles_and_keys_in_the_environment_that_holds_which_hadoop_asks_first():
    profiles = "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider"
    assert options({PROVIDER: profiles}, IN_THE_ENVIRONMENT).profile == "default"
    assert options({PROVIDER: f"{profiles},{FROM_ENVIRONMENT}"}, IN_THE_ENVIRONMENT).profile == "default"
    assert options({PROVIDER: f"{FROM_ENVIRONMENT},{profiles}"}, IN_THE_ENVIRONMENT).profile is None


@pytest.mark.parametrize("keys", ["", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider,"])
@pytest.mark.parametrize(
    "role",
    [
        "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
        "com.amazonaws.auth.WebIdentityTokenCredentialsProvider,com.amazonaws.auth.InstanceProfileCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider",
    ],
)
def test_keys_in_the_environment_are_not_used_where_hadoop_was_told_to_ask_roles_only(role, keys):
    with pytest.raises(InvalidRequest, match="AWS_ACCESS_KEY_ID is set, which Hadoop would not look at") as caught:
        options({PROVIDER: keys + role}, IN_THE_ENVIRONMENT)
    assert "unset it, or add" in str(caught.value)
    assert "AKIAKEY" not in str(caught.value)
    assert options({PROVIDER: f"{role},{FROM_ENVIRONMENT}"}, IN_THE_ENVIRONMENT) == StorageOptions()


def test_the_whole_chain_takes_the_profile_that_the_environment_names():
    provider = {PROVIDER: "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"}
    assert options(provider, {"AWS_PROFILE": "etl"}).profile == "etl"
    assert options(provider, {"AWS_PROFILE": "etl", **IN_THE_ENVIRONMENT}).profile is None


@pytest.mark.parametrize(
    "provider",
    [
        "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider",
        "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
        "com.acme.VaultProvider",
    ],
)
@pytest.mark.parametrize("environment", [{}, IN_THE_ENVIRONMENT])
def test_a_provider_without_a_counterpart_is_refused_by_its_name_with_the_remedy(provider, environment):
    with pytest.raises(InvalidRequest, match=provider) as caught:
        options({PROVIDER: f"com.amazonaws.auth.InstanceProfileCredentialsProvider,{provider}"}, environment)
    assert "StorageOptions(credentials='package.module:function')" in str(caught.value)


@pytest.mark.parametrize("secret", SECRETS)
def test_keys_in_the_settings_are_told_of_and_not_repeated_where_nothing_else_is_at_hand(secret):
    with pytest.raises(InvalidRequest, match=f"{secret} is set, and not read") as caught:
        options({secret: "hush"})
    assert "hush" not in str(caught.value)
    assert "environment of the driver and the executors" in str(caught.value)


@pytest.mark.parametrize("secret", ["access.key", "session.token"])
def test_keys_of_one_bucket_concern_that_bucket(secret):
    settings = {f"fs.s3a.bucket.lake.{secret}": "hush"}
    with pytest.raises(InvalidRequest):
        options(settings)
    assert options(settings, bucket="other") == StorageOptions()


@pytest.mark.parametrize("variable", ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"])
def test_keys_in_the_settings_never_reach_the_options(variable):
    found = options({**KEYS, "fs.s3a.endpoint": "https://minio:9000"}, {variable: "x"})
    assert found == StorageOptions(endpoint="https://minio:9000", path_style=False)
    assert "hush" not in repr(found)


def test_a_provider_of_keys_alone_is_refused_whatever_the_settings_hold():
    with pytest.raises(InvalidRequest, match="takes keys from settings, which are not read"):
        options({PROVIDER: "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"})
