import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Models this small are slower on several threads, much slower on a busy machine."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
