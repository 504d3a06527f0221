import sys

import pytest

from tallymark.bench.hadoop_aws import CONNECTORS
from tallymark.bench.peers.writers import NAMES
from tallymark.bench.writes.bundle import Bundle, bundle_of
from tallymark.bench.writes.object_place import far_away
from tallymark.bench.writes.place import WritePlace
from tallymark.bench.writes.session import Unfit, _jars

HERE = WritePlace(kind="local", title="here", where="here", url="/here")


def test_the_bundle_of_this_python_has_a_connector():
    assert bundle_of(sys.executable).hadoop in CONNECTORS


@pytest.mark.parametrize("name", sorted({"delta", "hudi", "hudi-direct"} & set(NAMES)))
def test_a_side_whose_jars_are_for_another_spark_is_absent_with_the_remedy(name):
    with pytest.raises(Unfit, match=rf"this is 9\.9\.0: give --python {name}=PATH of a Python with pyspark=="):
        _jars(name, HERE, Bundle(spark="9.9.0", hadoop="3.5.0"))


def test_a_hadoop_without_a_known_connector_is_named():
    with far_away(0) as place, pytest.raises(Unfit, match=r"bundles Hadoop 2\.7\.3"):
        _jars("v1", place, Bundle(spark="4.3.0", hadoop="2.7.3"))
