"""Rules of the shop."""
load("//rules:base.bzl", "base_rule", helper = "assist")

DEFAULTS = ["a"]

def shop_library(name, **kwargs):
    """Make a library."""
    base_rule(name = name, srcs = native.glob(["*.py"]), **kwargs)

shop_library(
    name = "store",
    deps = [":other"],
)
