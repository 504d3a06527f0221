from tests.packaging.test_front_door import answer


def test_without_pytest_the_conformance_suite_says_what_to_install():
    program = (
        "import sys; sys.modules['pytest'] = None\n"
        "try: import tallymark.backends.testing\n"
        "except ImportError as error: print(error)"
    )
    assert "pip install pytest" in answer(program)


def test_storage_is_opened_without_pytest():
    program = "import sys, tallymark; tallymark.open_backend('memory:'); print('pytest' in sys.modules)"
    assert answer(program) == "False"
