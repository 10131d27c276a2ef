"""The version of srcdiff; the package metadata is made from it."""

__version__ = "0.2.0"
