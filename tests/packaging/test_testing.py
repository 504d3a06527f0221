import subprocess
import sys


def answer(program: str) -> str:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


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
