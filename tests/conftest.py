"""Options that all tests share."""

import os


def pytest_addoption(parser):
    parser.addoption("--waves", action="store_true",
                     help="build models that write a waveform, and say where it is")


def pytest_configure(config):
    # The variables reach the workers of xdist, and whatever builds a model.
    if config.getoption("--waves"):
        os.environ["KVS_WAVES"] = "1"
