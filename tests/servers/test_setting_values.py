"""Values of settings: lists as the server splits them, and texts that mean the same."""

from __future__ import annotations

import pytest

from pgtrial.servers.auto_conf import moved, read_auto_conf
from pgtrial.servers.session_values import differences
from pgtrial.servers.setting_values import elements, is_list


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("search_path", '"$user", public', ["$user", "public"]),
        ("search_path", '$user,Public,\t"Tricky, ""name"""', ["$user", "public", 'Tricky, "name"']),
        ("search_path", "", []),
        ("search_path", '""', [""]),
        ("temp_tablespaces", " pg_default , pg_global ", ["pg_default", "pg_global"]),
        ("session_preload_libraries", "auto_explain,pg_stat_statements", ["auto_explain", "pg_stat_statements"]),
        ("SESSION_PRELOAD_LIBRARIES", '"$libdir/a b", Upper', ["$libdir/a b", "Upper"]),
        ("local_preload_libraries", "a b , c", ["a b", "c"]),
    ],
)
def test_a_list_is_split_as_the_server_splits_it(name, text, found):
    assert elements(name, text) == found


@pytest.mark.parametrize("text", ["a,", ",a", "a,,b", '"a', '"a" b', "a b"])
def test_a_text_that_is_no_list_is_refused(text):
    with pytest.raises(ValueError, match=r'^[a"]|^$|^,'):
        elements("search_path", text)


@pytest.mark.server
@pytest.mark.parametrize("major", [13, 15, 18])
def test_which_settings_alter_system_quotes_by_element(start_cluster, major):
    cluster = start_cluster(major)
    values = {
        **dict.fromkeys(("search_path", "session_preload_libraries", "local_preload_libraries"), "A"),
        **dict.fromkeys(("shared_preload_libraries", "temp_tablespaces", "unix_socket_directories"), "A"),
        **dict.fromkeys(("synchronous_standby_names", "listen_addresses", "cluster_name"), "A"),
        **{"DateStyle": "ISO", "log_destination": "Stderr", "wal_consistency_checking": "Heap"},
    }
    with cluster.target.connect_as_user() as session:
        for name, text in values.items():
            session.execute(f"ALTER SYSTEM SET {name} = '{text}'".encode())
        file = read_auto_conf(session)
        version = session.info.server_version
    quoted = {line.name for line in file.lines if line.text.startswith('"')}
    assert quoted == {name.lower() for name in values if is_list(name, version)}
    assert ("unix_socket_directories" in quoted) == (major >= 14)
    assert len(file.lines) == len(values)


def test_lines_are_moved_back_with_as_few_writes_as_possible():
    assert moved(["a", "b"], ["a", "b"]) == []
    assert moved(["b", "c", "a"], ["a", "b", "c"]) == ["b", "c"]
    assert moved(["a", "c", "b"], ["a", "b", "c"]) == ["c"]
    assert moved(["a", "new", "b"], ["a", "b"]) == ["new"]
    assert moved([], ["a"]) == []


@pytest.mark.server
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("work_mem", "4096"),
        ("work_mem", "4MB"),
        ("work_mem", " 4096 kB "),
        ("work_mem", "0x1000"),
        ("work_mem", "0.00390625GB"),
        ("statement_timeout", "1.5min"),
        ("statement_timeout", "90s"),
        ("random_page_cost", "1.1e0"),
        ("jit", "of"),
        ("jit", "FALSE"),
        ("datestyle", "German"),
        ("timezone", "asia/kathmandu"),
        ("search_path", "  pg_catalog,PUBLIC"),
        ("temp_tablespaces", ""),
        ("checkpoint_timeout", "300"),
        ("checkpoint_timeout", "0.0834h"),
        ("checkpoint_completion_target", ".9"),
        ("max_wal_size", "128"),
        ("temp_file_limit", "-1"),
        ("client_min_messages", "warning"),
    ],
)
def test_values_that_are_written_otherwise_are_equal(clusters, name, wanted):
    present = {
        "work_mem": "4MB",
        "statement_timeout": "90000",
        "random_page_cost": "1.1",
        "jit": "off",
        "datestyle": "German, DMY",
        "timezone": "Asia/Kathmandu",
        "search_path": "pg_catalog, public",
        "temp_tablespaces": '""',
        "client_min_messages": "WARNING",
    }
    own = {name: present[name]} if name in present else {}
    with clusters(18).target.with_settings(own).connect_as_user() as session:
        assert differences(session, {name: wanted}) == {}


@pytest.mark.server
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("work_mem", "4097kB"),
        ("log_line_prefix", "%p "),
        ("checkpoint_timeout", "301s"),
        ("max_connections", "1"),
        ("jit", "off"),
        ("datestyle", "ISO, DMY"),
        ("search_path", "public"),
        ("nothing", "1"),
    ],
)
def test_another_value_is_seen(clusters, name, wanted):
    own = {"work_mem": "4MB", "jit": "on", "datestyle": "ISO, MDY", "search_path": "public, pg_catalog"}
    with clusters(18).target.with_settings({n: v for n, v in own.items() if n == name}).connect_as_user() as session:
        assert list(differences(session, {name: wanted})) == [name]
