"""The Redis that modules of other rooms have as well."""

from tests.stores.conftest import server as server
