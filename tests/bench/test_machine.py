from tallymark.bench.machine import Machine


def test_machine_tells_processor_cores_kernel_and_releases():
    text = str(Machine.here())
    assert "cores" in text
    assert "Linux" in text
    assert "trio 0." in text
