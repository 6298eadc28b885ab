"""Reads rocpd databases for the tests, and makes one as rocprofv3 fills it.

    query DATABASE SQL        prints the rows as JSON
    record DATABASE           makes a database with three dispatches
    join DATABASE REGISTRY    prints dispatches of the first joined with kernels of the second
"""

import json
import sqlite3
import sys

UUID = "0199a2b4_7c6e_7a10_9d0b_5a2f8c1e4d77"
GUID = UUID.replace("_", "-")

# The tables that have a part in the join: columns after id and guid, with types and constraints, and
# what they refer to, by rocprofiler-sdk's rocpd_tables.sql of schema version 3.
TABLES = {
    "info_node": (
        "hash BIGINT NOT NULL UNIQUE, machine_id TEXT NOT NULL UNIQUE, system_name TEXT,"
        " hostname TEXT, release TEXT, version TEXT, hardware_name TEXT, domain_name TEXT",
        {},
    ),
    "info_process": (
        "nid INTEGER NOT NULL, ppid INTEGER, pid INTEGER NOT NULL, init BIGINT, fini BIGINT,"
        " start BIGINT, end BIGINT, command TEXT, environment JSONB DEFAULT '{}' NOT NULL,"
        " extdata JSONB DEFAULT '{}' NOT NULL",
        {"nid": "info_node"},
    ),
    "info_agent": (
        "nid INTEGER NOT NULL, pid INTEGER NOT NULL, type TEXT CHECK (type IN ('CPU', 'GPU')),"
        " absolute_index INTEGER, logical_index INTEGER, type_index INTEGER, uuid INTEGER, name TEXT,"
        " model_name TEXT, vendor_name TEXT, product_name TEXT, user_name TEXT,"
        " extdata JSONB DEFAULT '{}' NOT NULL",
        {"nid": "info_node", "pid": "info_process"},
    ),
    "info_code_object": (
        "nid INTEGER NOT NULL, pid INTEGER NOT NULL, agent_id INTEGER, uri TEXT, load_base BIGINT,"
        " load_size BIGINT, load_delta BIGINT,"
        " storage_type TEXT CHECK (storage_type IN ('FILE', 'MEMORY')),"
        " extdata JSONB DEFAULT '{}' NOT NULL",
        {"nid": "info_node", "pid": "info_process", "agent_id": "info_agent"},
    ),
    "info_kernel_symbol": (
        "nid INTEGER NOT NULL, pid INTEGER NOT NULL, code_object_id INTEGER NOT NULL,"
        " kernel_name TEXT, display_name TEXT, kernel_object INTEGER, kernarg_segment_size INTEGER,"
        " kernarg_segment_alignment INTEGER, group_segment_size INTEGER,"
        " private_segment_size INTEGER, sgpr_count INTEGER, arch_vgpr_count INTEGER,"
        " accum_vgpr_count INTEGER, extdata JSONB DEFAULT '{}' NOT NULL",
        {"nid": "info_node", "pid": "info_process", "code_object_id": "info_code_object"},
    ),
    "kernel_dispatch": (
        "nid INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER, agent_id INTEGER NOT NULL,"
        " kernel_id INTEGER NOT NULL, dispatch_id INTEGER NOT NULL, queue_id INTEGER NOT NULL,"
        " stream_id INTEGER NOT NULL, start BIGINT NOT NULL, end BIGINT NOT NULL,"
        " private_segment_size INTEGER, group_segment_size INTEGER,"
        " workgroup_size_x INTEGER NOT NULL, workgroup_size_y INTEGER NOT NULL,"
        " workgroup_size_z INTEGER NOT NULL, grid_size_x INTEGER NOT NULL,"
        " grid_size_y INTEGER NOT NULL, grid_size_z INTEGER NOT NULL, region_name_id INTEGER,"
        " event_id INTEGER, extdata JSONB DEFAULT '{}' NOT NULL",
        {
            "nid": "info_node",
            "pid": "info_process",
            "agent_id": "info_agent",
            "kernel_id": "info_kernel_symbol",
        },
    ),
}


def record(path):
    database = sqlite3.connect(path)
    database.execute("PRAGMA foreign_keys = ON")
    for name, (columns, references) in TABLES.items():
        keys = "".join(
            f', FOREIGN KEY ({column}) REFERENCES "rocpd_{table}_{UUID}" (id) ON UPDATE CASCADE'
            for column, table in references.items()
        )
        # Its columns are quoted there; end is a keyword.
        quoted = columns.replace(" end BIGINT", ' "end" BIGINT')
        database.execute(
            f'CREATE TABLE "rocpd_{name}_{UUID}" (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,'
            f" guid TEXT DEFAULT '{GUID}' NOT NULL, {quoted}{keys})"
        )
        database.execute(f'CREATE VIEW "rocpd_{name}" AS SELECT * FROM "rocpd_{name}_{UUID}"')

    def insert(table, **values):
        columns = ", ".join(f'"{column}"' for column in values)
        marks = ", ".join("?" * len(values))
        database.execute(
            f'INSERT INTO "rocpd_{table}_{UUID}" ({columns}) VALUES ({marks})', [*values.values()]
        )

    # The keys of processes and agents are the system's numbers, those of code objects and kernels
    # rocprofiler's. storage_type is left out, and a kernel's name is that of its descriptor.
    owner = {"nid": 5, "pid": 4711}
    insert("info_node", id=5, hash=123, machine_id="0f3c", hostname="elsewhere")
    insert("info_process", id=4711, nid=5, ppid=1, pid=4711, init=1, fini=9, start=1, end=9, command="app")
    insert("info_agent", id=2, **owner, type="GPU", absolute_index=2, logical_index=1, type_index=0, name="gfx90a")
    for number, identity, kernel in [(31, "aa", "_Z5scalePff.kd"), (32, "bb", "_Z4fillIiEvPT_S0_.kd")]:
        insert(
            "info_code_object",
            id=number, **owner, agent_id=2, uri=f"file:///app/{identity}#offset=4096&size=4000",
            load_base=1 << 40, load_size=0x3000, load_delta=1 << 40,
        )
        insert(
            "info_kernel_symbol",
            id=number + 100, **owner, code_object_id=number, kernel_name=kernel,
            display_name=kernel, kernel_object=(1 << 40) + 64, kernarg_segment_size=16,
            kernarg_segment_alignment=8, group_segment_size=0, private_segment_size=0,
            sgpr_count=32, arch_vgpr_count=40, accum_vgpr_count=8,
        )
    for number, kernel in enumerate([131, 131, 132], 1):
        insert(
            "kernel_dispatch",
            **owner, tid=1, agent_id=2, kernel_id=kernel, dispatch_id=number, queue_id=1,
            stream_id=1, start=number, end=number + 1, workgroup_size_x=64, workgroup_size_y=1,
            workgroup_size_z=1, grid_size_x=64, grid_size_y=1, grid_size_z=1,
        )
    database.commit()
    database.close()
    return []


def join(recorded, registry):
    database = sqlite3.connect(recorded)
    database.execute("ATTACH ? AS rocov", [registry])
    # A code object of several processes is there several times: the process that is meant is known.
    return database.execute(
        """
        SELECT k.kernel_name, count(*), json_extract(rc.extdata, '$.identity'), rk.accum_vgpr_count
        FROM rocpd_kernel_dispatch d
        JOIN rocpd_info_kernel_symbol k ON k.id = d.kernel_id
        JOIN rocpd_info_code_object c ON c.id = k.code_object_id
        JOIN rocov.rocpd_info_code_object rc ON rc.uri = c.uri
        JOIN rocov.rocpd_info_kernel_symbol rk
          ON rk.code_object_id = rc.id AND rk.kernel_name = k.kernel_name
        WHERE rc.pid = 7
        GROUP BY k.kernel_name ORDER BY k.kernel_name
        """
    ).fetchall()


def query(path, sql):
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute(sql).fetchall()


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    print(json.dumps({"query": query, "record": record, "join": join}[verb](*arguments)))
