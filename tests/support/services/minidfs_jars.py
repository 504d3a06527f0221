"""What a MiniDFSCluster loads when it runs: of the hundred jars that Hadoop's build names, these 45."""

_HADOOP = "3.4.2"
_JETTY = "9.4.57.v20241219"
_JETTY_PARTS = ("http", "io", "security", "server", "servlet", "util", "util-ajax", "webapp", "xml")
_NETTY = "4.1.118.Final"
_NETTY_PARTS = ("buffer", "codec", "codec-http", "common", "handler", "resolver", "transport")
_LOG = "1.7.36"

MINIDFS_JARS = (
    f"org.apache.hadoop:hadoop-hdfs:{_HADOOP}",
    f"org.apache.hadoop:hadoop-hdfs:{_HADOOP}:tests",
    f"org.apache.hadoop:hadoop-hdfs-client:{_HADOOP}",
    f"org.apache.hadoop:hadoop-common:{_HADOOP}",
    f"org.apache.hadoop:hadoop-common:{_HADOOP}:tests",
    f"org.apache.hadoop:hadoop-annotations:{_HADOOP}",
    f"org.apache.hadoop:hadoop-auth:{_HADOOP}",
    "org.apache.hadoop.thirdparty:hadoop-shaded-guava:1.4.0",
    "org.apache.hadoop.thirdparty:hadoop-shaded-protobuf_3_25:1.4.0",
    "ch.qos.reload4j:reload4j:1.2.22",
    "com.fasterxml.jackson.core:jackson-annotations:2.12.7",
    "com.fasterxml.jackson.core:jackson-core:2.12.7",
    "com.fasterxml.jackson.core:jackson-databind:2.12.7.1",
    "com.fasterxml.woodstox:woodstox-core:5.4.0",
    "com.sun.jersey:jersey-servlet:1.19.4",
    "commons-cli:commons-cli:1.9.0",
    "commons-codec:commons-codec:1.15",
    "commons-io:commons-io:2.16.1",
    "commons-logging:commons-logging:1.3.0",
    *(f"io.netty:netty-{part}:{_NETTY}" for part in _NETTY_PARTS),
    "javax.servlet:javax.servlet-api:3.1.0",
    "org.apache.commons:commons-collections4:4.4",
    "org.apache.commons:commons-compress:1.26.1",
    "org.apache.commons:commons-configuration2:2.10.1",
    "org.apache.commons:commons-lang3:3.17.0",
    "org.apache.commons:commons-math3:3.6.1",
    "org.apache.commons:commons-text:1.10.0",
    "org.codehaus.woodstox:stax2-api:4.2.1",
    *(f"org.eclipse.jetty:jetty-{part}:{_JETTY}" for part in _JETTY_PARTS),
    f"org.slf4j:slf4j-api:{_LOG}",
    f"org.slf4j:slf4j-reload4j:{_LOG}",
)
