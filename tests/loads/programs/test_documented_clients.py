"""The programs of the documentation that need no server: node's, with a driver that answers by itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pgtrial.loads.programs.program import Program, ProgramOrder

CLIENTS = Path(__file__).parents[3] / "docs" / "clients"

DRIVER = """
exports.Client = class {
  async connect() {}
  async query(query) { if (query.name !== "one" || !(query.values[0] >= 1)) throw new Error("another query"); }
  async end() { console.error("ended"); }
};
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_program_of_node_keeps_to_the_protocol(tmp_path):
    package = tmp_path / "node_modules" / "pg"
    package.mkdir(parents=True)
    (package / "index.js").write_text(DRIVER)
    (package / "package.json").write_text('{"name": "pg", "version": "8.99.0"}')
    shutil.copy(CLIENTS / "bench.js", tmp_path)
    with Program(ProgramOrder("node bench.js", tmp_path, {})) as client:
        batches = [client.run_batch() for _ in range(3)]
        assert client.name == "node-postgres 8.99.0"
    assert [batch.operations for batch in batches] == [500] * 3
    assert list(client._tail) == ["ended\n"]


def test_each_program_names_its_batches_times_and_operations():
    for client in ("bench.py", "bench.js", "bench.go"):
        text = (CLIENTS / client).read_text()
        assert all(word in text for word in ("batch", "ms", "operations", "program", "version"))
        assert len(text.splitlines()) <= 40
